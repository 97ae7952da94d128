"""Files that `driftpin init` writes, as package data. Holds no code of its own."""
