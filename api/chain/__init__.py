"""Read-only chain endpoints. Each module has its statements in the `.sql` beside it."""
