"""The commands of `python -m api` and `python -m api worker`, and the processes that they start."""
