"""Blockfrost's API over the handlers and statements of this one, so that its clients work here with another URL."""
