"""The verdict as one self-contained HTML page: words from the documented JSON, sequences from the store."""
