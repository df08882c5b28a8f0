"""Tickets: what stands for an API key in a URL, for one subscription and some hours.

A browser's EventSource can't send headers, and a URL ends up in logs and histories, so a key must not be in one. A
ticket is signed with the hash of its key: it needs no row, and ends with its key.
"""

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

VALID_FOR = timedelta(hours=12)

_PREFIX = "iiak_ticket_"
_ID_BYTES, _TIME_BYTES, _MAC_BYTES = 16, 5, 32
_CLAIM_BYTES = 2 * _ID_BYTES + _TIME_BYTES
_PURPOSE = b"ledgerline ticket 1:"  # a key's hash signs nothing else


class Ticket(msgspec.Struct, frozen=True):
    """The claims of a ticket, and their signature, which is still to be verified."""

    credential_id: UUID
    subscription_id: UUID
    expires_at: datetime  # of whole seconds
    mac: bytes

    @property
    def claims(self) -> bytes:
        """What is signed."""
        until_s = int(self.expires_at.timestamp()).to_bytes(_TIME_BYTES)
        return self.credential_id.bytes + self.subscription_id.bytes + until_s

    def is_signed_with(self, key_hash: bytes) -> bool:
        """Whether it was issued to the API key with this hash."""
        return hmac.compare_digest(self.mac, _mac(key_hash, self.claims))

    @property
    def text(self) -> str:
        """The ticket as it is sent."""
        return _PREFIX + base64.urlsafe_b64encode(self.claims + self.mac).decode()


def issued(key_hash: bytes, credential_id: UUID, subscription_id: UUID, now: datetime) -> Ticket:
    """A new ticket for a key and a subscription of its credential."""
    unsigned = Ticket(credential_id, subscription_id, (now + VALID_FOR).replace(microsecond=0), b"")
    return msgspec.structs.replace(unsigned, mac=_mac(key_hash, unsigned.claims))


def parse(text: str) -> Ticket | None:
    """The ticket that a caller sent; None if it has not the form of one."""
    if not text.startswith(_PREFIX):
        return None
    try:
        raw = base64.b64decode(text.removeprefix(_PREFIX), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) != _CLAIM_BYTES + _MAC_BYTES:
        return None
    until_s = int.from_bytes(raw[2 * _ID_BYTES : _CLAIM_BYTES])
    try:
        expires_at = datetime.fromtimestamp(until_s, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return Ticket(
        UUID(bytes=raw[:_ID_BYTES]), UUID(bytes=raw[_ID_BYTES : 2 * _ID_BYTES]), expires_at, raw[_CLAIM_BYTES:]
    )


def _mac(key_hash: bytes, claims: bytes) -> bytes:
    return hmac.digest(key_hash, _PURPOSE + claims, hashlib.sha256)
