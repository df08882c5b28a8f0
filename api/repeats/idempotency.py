"""The header `Idempotency-Key`: a POST that is repeated with the same key and body is executed once.

The row of a key is written in the commit of its change, so a lost answer can be requested again whatever has failed in
between (docs/decisions/0035-idempotency-keys.md). A node accepts a transaction outside any commit: the row is written
after that, and a repeated request that finds no row submits again, which is harmless (0043-submitted.md).
"""

import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
from aiohttp import web

from api import answers, errors
from api.answers import Issued
from api.ask import AdminAsk, ChainChange, EventsAsk
from api.parameters import Question
from api.repeats import caching
from api.route import Route
from shared import schema, sql

HEADER, REPLAYED = "Idempotency-Key", "Idempotent-Replayed"
MAX_KEY_LENGTH = 255

_VALID = re.compile(rf"[\x20-\x7e]{{1,{MAX_KEY_LENGTH}}}")
_REMEMBERED = "INSERT 0 1"
_LOCK = 0x4C454450  # arbitrary; the first half of the advisory lock's key, 32 bits of the hash are the second


class _Executed(msgspec.Struct, frozen=True):
    body_hash: bytes
    target_id: UUID
    issued_to: str | None
    answer: bytes | None
    invalidated: list[bytes]


_sql = sql.beside(__file__)
_lock = _sql.command("lock")
_lock_session = _sql.command("lock_session")
_unlock_session = _sql.command("unlock_session")
_executed = _sql.query("executed", _Executed)
_remember = _sql.command("remember")


def key_of(request: web.BaseRequest) -> str | None:
    """The idempotency key of a request; None without one. Raises Refusal."""
    sent = request.headers.getall(HEADER, ())
    if not sent:
        return None
    if len(sent) > 1 or not _VALID.fullmatch(sent[0]):
        raise errors.invalid_idempotency_key()
    return sent[0]


def hash_of_body(key: str, sent: Mapping[str, Any]) -> bytes:
    """The hash of a body, from its JSON. The order of its fields does not matter."""
    return _hash(key, sent)


async def answer(route: Route, ask: AdminAsk[Any, Any], body_hash: bytes, key: str) -> Any:
    """The answer of the route's handler or, if a request with this key was executed before, the whole response.

    If any process is executing a request with this key, this call waits for it. Raises Refusal. If the handler raises
    one, nothing is stored, since its commit is rolled back.
    """
    key_hash = _key_hash(ask.key.id, route, ask.question, key)
    async with ask.commit() as db:
        await _lock.run(db, _LOCK, _lock_of(key_hash))
        executed = await _executed.one(db, key_hash)
        if executed is None:
            made = await route.handler(msgspec.structs.replace(ask, committing=db))
            target_id, issued_to = _target(made.data)
            body = answers.encode(made) if issued_to is None else None
            invalidated = ask.invalidation.key_hashes
            tag = await _remember.run(db, key_hash, body_hash, target_id, issued_to, body, invalidated)
            assert tag == _REMEMBERED, "the lock keeps the same key from being remembered twice"
            return made
    if executed.body_hash == body_hash:
        async with ask.services.callers.invalidating() as invalidation:
            # The process that executed it may have been killed before the caches had forgotten these keys for good.
            await invalidation.of(executed.invalidated)
    return _repeated(route, executed, body_hash)


async def answer_change(route: Route, ask: ChainChange[Any, Any], body_hash: bytes, key: str) -> Any:
    """The same for a change on a chain. Its handler makes its own commits, and may be called again after a crash."""
    key_hash = _key_hash(ask.key.credential_id, route, ask.question, key)
    async with _locked(ask.db, _lock_of(key_hash)):
        executed = await _executed.one(ask.db, key_hash)
        if executed is None:
            made = await route.handler(ask)
            body = answers.encode(made)
            async with schema.commit(ask.db):
                tag = await _remember.run(ask.db, key_hash, body_hash, ask.key.credential_id, None, body, [])
            assert tag == _REMEMBERED, "the lock keeps the same key from being remembered twice"
            return made
    return _repeated(route, executed, body_hash)


async def answer_events(route: Route, ask: EventsAsk[Any, Any], body_hash: bytes, key: str) -> Any:
    """The same for a change of the caller's subscriptions, which is one commit."""
    key_hash = _key_hash(ask.key.credential_id, route, ask.question, key)
    async with ask.commit() as db:
        await _lock.run(db, _LOCK, _lock_of(key_hash))
        executed = await _executed.one(db, key_hash)
        if executed is None:
            made = await route.handler(msgspec.structs.replace(ask, committing=db))
            target_id, issued_to = ask.key.credential_id, None
            if isinstance(made.data, Issued):
                target_id, issued_to = _target(made.data)
            body = answers.encode(made) if issued_to is None else None
            tag = await _remember.run(db, key_hash, body_hash, target_id, issued_to, body, [])
            assert tag == _REMEMBERED, "the lock keeps the same key from being remembered twice"
            return made
    return _repeated(route, executed, body_hash)


@asynccontextmanager
async def _locked(db: asyncpg.Connection, number: int) -> AsyncIterator[None]:
    """Hold the lock with this number, without a transaction: meanwhile other sessions may commit."""
    try:
        await _lock_session.run(db, _LOCK, number)
        yield
    finally:
        try:
            await _unlock_session.run(db, _LOCK, number)
        except BaseException:
            db.terminate()  # the end of the session frees it
            raise


def _repeated(route: Route, executed: _Executed, body_hash: bytes) -> web.Response:
    """The answer to a request that was executed before. Raises Refusal if it must not or can't be repeated."""
    if executed.body_hash != body_hash:
        raise errors.idempotency_key_reused()
    if executed.issued_to is not None:
        raise errors.key_not_shown_again(f"{executed.issued_to.replace('_', ' ')} {executed.target_id}")
    if executed.answer is None:
        raise errors.answer_erased()
    response = caching.unstored(route.status, executed.answer)
    response.headers[REPLAYED] = "true"
    return response


def _target(data: Any) -> tuple[UUID, str | None]:
    """The id of the record in an answer and, if the answer contains a new key, the kind of that record."""
    if not isinstance(data, Issued):
        return data.id, None
    kind = data.__struct_fields__[0]
    return getattr(data, kind).id, kind


def _key_hash(caller_id: UUID, route: Route, question: Question, key: str) -> bytes:
    """The hash that identifies a request. Ids in the path have their canonical form."""
    path = route.path.format_map(msgspec.to_builtins(question))
    return _hash(caller_id, route.method, path, key)


def _lock_of(key_hash: bytes) -> int:
    return int.from_bytes(key_hash[:4], signed=True)


def _hash(*parts: object) -> bytes:
    """The SHA-256 of values as JSON, with the fields of objects in alphabetical order."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).digest()
