"""Callers: API keys and admin keys, what they may do, and how often."""
