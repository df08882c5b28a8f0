"""A package, because every process that `verify` starts would import the main module again if it were a module."""
