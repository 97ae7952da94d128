"""The service: schedule, dispatch, evaluate, tell. It starts replays as child processes and never imports torch."""
