"""Compare blocks and the state of the ledger with a node."""
