"""The HTTP server: a request's way from its first byte to its line in the access log."""
