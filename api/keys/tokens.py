"""API keys and admin keys: how they are generated, hashed and abbreviated."""

import hashlib
import secrets

API_KEY_PATTERN = "iiak_[0-9a-f]{48}"

_PREFIX_LENGTH = len("iiak_") + 8
_ADMIN_PREFIX_LENGTH = len("iiak_admin_") + 8


def new_api_key() -> str:
    """Generate an API key: `iiak_` and 192 random bits from the operating system, 53 characters."""
    return f"iiak_{secrets.token_hex(24)}"


def new_admin_key() -> str:
    """Generate an admin key: `iiak_admin_` and 160 random bits of the operating system, 51 characters."""
    return f"iiak_admin_{secrets.token_hex(20)}"


def hash_of(key: str) -> bytes:
    """The SHA-256 of a key, which is all that is stored. A random key needs neither salt nor stretching."""
    return hashlib.sha256(key.encode()).digest()


def prefix_of(api_key: str) -> str:
    """The prefix of an API key that identifies it in lists: 32 of its 192 bits."""
    return api_key[:_PREFIX_LENGTH]


def admin_prefix_of(admin_key: str) -> str:
    """The prefix of an admin key that identifies it in lists: 32 of its 160 bits."""
    return admin_key[:_ADMIN_PREFIX_LENGTH]
