"""The runner: the only room that imports torch. It loads models, replays canaries and records what they did."""
