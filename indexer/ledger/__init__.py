"""Data that blocks do not contain, read from the node's ledger state: stake snapshots, rewards, parameters."""
