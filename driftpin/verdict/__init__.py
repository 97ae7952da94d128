"""The opinion: a comparison judged by policy."""
