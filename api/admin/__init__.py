"""The admin endpoints: users, credentials, admin keys, usage, audit. A change and its audit row are one commit."""
