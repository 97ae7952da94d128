"""Suites: what is asked of a model, as values, files and checks."""
