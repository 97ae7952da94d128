"""Configuration, recipes and policies as values, and the files and variables they are read from."""
