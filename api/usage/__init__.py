"""Counted requests: from the spool of a process to the queue of the aggregator."""
