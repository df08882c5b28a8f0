"""The HTTP API: callers on one side, Postgres on the other. Start reading in `routes.py`."""
