"""What replays that nobody ordered by name are run for."""

CONFIRM = "confirm"  # repeats a change in a fresh process
REFERENCE = "reference"  # the float32 arm beside a native replay
