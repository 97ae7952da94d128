"""Comparison of two sets of traces: facts, no opinion."""
