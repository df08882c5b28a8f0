"""What a chain says, read only: transactions, assets, pools. Each module has its statements in the `.sql` beside it."""
