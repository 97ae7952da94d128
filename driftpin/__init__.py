"""driftpin: pins the environment of language-model inference and watches it for drift."""
