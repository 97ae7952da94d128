"""Traces: what one canary produced under one probe, as values with canonical bytes."""
