"""Blockfrost's API, built on the handlers and statements of this one. Its clients work here with another URL."""
