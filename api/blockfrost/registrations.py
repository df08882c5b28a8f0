"""The registrations and deregistrations of an account, for `/accounts/{stake_address}/registrations`."""

from typing import Literal

import msgspec

from api.blockfrost.paging import Page
from shared import packed, sql
from shared.ledger import slot_of
from shared.network import STAKE_DEPOSIT, Network
from shared.sql import Connection


class Registration(msgspec.Struct, frozen=True):
    """A registration, with its deposit, or a deregistration."""

    tx_hash: str
    action: Literal["registered", "deregistered"]
    deposit: str | None
    tx_slot: int
    block_time: int
    block_height: int


class _Row(msgspec.Struct, frozen=True):
    tx_id: int
    is_registration: bool
    earlier: int
    key_deposit: str | None
    hash: bytes
    extra: bytes | None
    block_no: int


_sql = sql.beside(__file__)
_page = {order: _sql.query("page", _Row, order=order) for order in ("asc", "desc")}


async def page(db: Connection, account: bytes, asked: Page, network: Network) -> list[Registration]:
    """A page of the registrations and deregistrations of an account, in a snapshot."""
    rows = await _page[asked.order].all(db, account, asked.count, asked.offset)
    return [
        Registration(
            row.hash.hex(),
            "registered" if row.is_registration else "deregistered",
            _deposit(row, account) if row.is_registration else None,
            slot_of(row.tx_id),
            int(network.slot_time(slot_of(row.tx_id)).timestamp()),
            row.block_no,
        )
        for row in rows
    ]


def _deposit(row: _Row, account: bytes) -> str:
    """The deposit that a registration names or, since those before Conway name none, that of its epoch's parameters.

    Where these are not stored it is what every network has taken since Shelley began.
    """
    credential = bytes((account[0] >> 4 & 1,)) + account[1:]
    registrations = [
        certificate
        for certificate in packed.unpack_extra(row.extra).certificates
        if certificate.stake == credential and certificate.type == "stakeCredentialRegistration"
    ]
    named = registrations[row.earlier].deposit
    return str(named) if named is not None else row.key_deposit or str(STAKE_DEPOSIT)
