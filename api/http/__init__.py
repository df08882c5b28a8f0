"""Parts of HTTP without knowledge of routes or keys: connections, bodies, compression, links, turns of callers."""
