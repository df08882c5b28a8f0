"""Chain endpoints, and the submission of transactions. Each module has its statements in the `.sql` beside it."""
