"""The two kinds of keys: how they are made, what is stored of them, and what of them may be shown."""

import hashlib
import re
import secrets

_API_KEY = re.compile(r"iiak_[0-9a-f]{48}")
_SHOWN = len("iiak_") + 8
_ADMIN_SHOWN = len("iiak_admin_") + 8


def new_api_key() -> str:
    """53 characters: `iiak_` and 192 random bits from the system's source."""
    return f"iiak_{secrets.token_hex(24)}"


def new_admin_key() -> str:
    """51 characters: `iiak_admin_` and 160 random bits from the system's source."""
    return f"iiak_admin_{secrets.token_hex(20)}"


def is_api_key(token: str) -> bool:
    """Whether a token has the form of an API key; any other can be refused without a look."""
    return _API_KEY.fullmatch(token) is not None


def hash_of(key: str) -> bytes:
    """SHA-256, all that is stored. A random key needs neither salt nor stretching."""
    return hashlib.sha256(key.encode()).digest()


def prefix_of(api_key: str) -> str:
    """What tells an API key from its siblings: 32 of its 192 bits."""
    return api_key[:_SHOWN]


def admin_prefix_of(admin_key: str) -> str:
    """What tells an admin key from its siblings: 32 of its 160 bits."""
    return admin_key[:_ADMIN_SHOWN]
