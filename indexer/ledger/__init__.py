"""Data that blocks do not contain, read from the node's ledger state: snapshots, rewards, parameters."""
