"""Engines: what runs a model for the worker, one protocol and one folder entry each."""
