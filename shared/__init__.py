"""Code that the indexer and the API share: networks, addresses, packed rows, settings and servers."""
