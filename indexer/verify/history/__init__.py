"""Unpack history in columns, and compare it with itself and with the rows that name its parts."""
