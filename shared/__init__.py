"""What the indexer and the API both know: networks, addresses, the bytes of a row, settings and servers."""
