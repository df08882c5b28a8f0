"""Read-only chain endpoints: transactions, assets, pools. Each module has its statements in the `.sql` beside it."""
