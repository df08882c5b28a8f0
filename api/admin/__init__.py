"""What partners administrate: users, credentials, admin keys, usage, audit. A change and its audit row: one commit."""
