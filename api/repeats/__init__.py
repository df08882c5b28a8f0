"""Answers to repeated requests: tags with 304, and idempotency keys."""
