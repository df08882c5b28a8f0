"""Ogmios -> chain_<network>: follows a network's chain and keeps every answer ready."""
