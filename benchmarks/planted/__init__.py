"""The planted-change matrix: benign changes and faults, through the whole product, expected against observed.

`python -m benchmarks.planted --help`, or `make matrix ARGS=…`. Nothing in the product knows of it.
"""
