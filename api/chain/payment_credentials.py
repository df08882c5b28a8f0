"""Payment credentials: what the addresses with one hold together, their unspent outputs, assets and transactions."""

from typing import Annotated

import msgspec

from api import errors
from api.answers import ChainAnswer, ChainPage, CursorPaging, PlacePaging
from api.ask import ChainAsk
from api.chain import owners, transactions, utxos
from api.chain.owners import Holding, HoldingList, OwnerSummary
from api.chain.tip import Tip
from api.chain.transactions import DetailedList, HistoryEntry, ShortList, Transaction
from api.chain.utxos import UnspentList, UnspentOutput
from api.parameters import Question, Text
from shared import address, sql
from shared.network import Network
from shared.packed import Origin
from shared.sql import Connection

Credential = Annotated[str, Text(address.MAX_CREDENTIAL_TEXT_LENGTH, message=errors.invalid_payment_credential)]


class CredentialQuestion(Question, frozen=True, kw_only=True):
    """A payment credential."""

    payment_credential: Credential


class CredentialOutputs(UnspentList, frozen=True, kw_only=True):
    """A page of the unspent outputs of a payment credential."""

    payment_credential: Credential


class CredentialAssets(HoldingList, frozen=True, kw_only=True):
    """A page of the assets of a payment credential."""

    payment_credential: Credential


class CredentialTransactions(ShortList, frozen=True, kw_only=True):
    """A page of the short list of a payment credential's transactions."""

    payment_credential: Credential


class CredentialTransactionsInFull(DetailedList, frozen=True, kw_only=True):
    """A page of the detailed list of a payment credential's transactions."""

    payment_credential: Credential


class PaymentCredential(OwnerSummary, frozen=True):
    """A payment credential and what its addresses hold: all with this hash in their payment part, whatever their stake
    part. All counts of one that was never used are 0.

    `id` is its hash. `origin` is that of its first address, `verificationKey` or `script`, null if there is none. An
    address may name either for the same hash, so the form of the question makes no difference.
    """

    id: str
    origin: Origin | None


_sql = sql.beside(__file__)
_first_address = _sql.values("first_address", bytes)


async def get_payment_credential(ask: ChainAsk[CredentialQuestion]) -> ChainAnswer[PaymentCredential]:
    """Get a payment credential.

    The answer has what its addresses hold, and their first and last transaction.
    """
    async with ask.snapshot() as db:
        data, tip = await read_with_tip(db, parse(ask.question.payment_credential), ask.network)
    return ChainAnswer(data=data, last_updated=tip.last_updated(ask.network))


async def read_with_tip(db: Connection, digest: bytes, network: Network) -> tuple[PaymentCredential, Tip]:
    """A payment credential by its hash, all zeros if it was never used, and the tip, in a snapshot. Raises Refusal if
    nothing is indexed.
    """
    summary, tip = await owners.summary(db, "credential", digest, network)
    first = await _first_address.one(db, digest)
    payment = None if first is None else address.parts_of(first).payment
    found = PaymentCredential(
        id=digest.hex(), origin=None if payment is None else payment.origin, **msgspec.structs.asdict(summary)
    )
    return found, tip


async def list_payment_credential_utxos(ask: ChainAsk[CredentialOutputs]) -> ChainPage[UnspentOutput, PlacePaging]:
    """List the unspent outputs of a payment credential.

    With `asset`, only outputs that hold it are listed.
    """
    return await utxos.unspent(ask, "credential", parse(ask.question.payment_credential))


async def list_payment_credential_assets(ask: ChainAsk[CredentialAssets]) -> ChainPage[Holding, PlacePaging]:
    """List the assets in the unspent outputs of a payment credential."""
    return await owners.holdings(ask, "credential", parse(ask.question.payment_credential))


async def list_payment_credential_transaction_history(
    ask: ChainAsk[CredentialTransactions],
) -> ChainPage[HistoryEntry, CursorPaging]:
    """List the transactions of a payment credential.

    A transaction is listed if it spends from an address with the credential or pays to one.
    """
    return await transactions.history_of(ask, "credential", parse(ask.question.payment_credential))


async def list_payment_credential_transactions(
    ask: ChainAsk[CredentialTransactionsInFull],
) -> ChainPage[Transaction, CursorPaging]:
    """List the transactions of a payment credential with their inputs and outputs."""
    return await transactions.detailed_of(ask, "credential", parse(ask.question.payment_credential))


def parse(text: str) -> bytes:
    """The hash in a caller's payment credential. Raises Refusal."""
    try:
        return address.parse_payment_credential(text)
    except address.InvalidAddress as cause:
        raise errors.invalid_payment_credential() from cause
