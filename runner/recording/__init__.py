"""What a running model computed, made small: taps on its modules, statistics, heads and layers of traces."""
