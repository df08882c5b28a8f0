"""What developers read: /openapi.json, the pages of /docs, and their examples."""
