"""Byron: ada only, implicit fees, Byron addresses, and redeemed vouchers."""

from typing import Any

from devnet.cast import LOST_VOUCHERS
from devnet.draft import Draft, Impossible
from devnet.transactions import TransactionKind

Json = dict[str, Any]

ADA = 1_000_000


def pay(draft: Draft) -> Json:
    senders = [person for person in draft.cast.byron_people if draft.references(person)]
    payer = draft.fund(50 * ADA, draft.random.choice(senders) if senders else draft.cast.faucets[1])
    for _ in range(draft.random.randint(1, 4)):
        draft.pay(draft.random.choice(draft.cast.byron_people), draft.random.randint(1, 9) * ADA)
    return draft.done(payer)


def redeem(draft: Draft) -> Json:
    """Spend a voucher: ada that genesis locked under a redeem key. Some goes to a voucher that is never redeemed."""
    *redeemable, lost = draft.cast.voucher_addresses[: 1 - LOST_VOUCHERS]
    unredeemed = [address for address in redeemable if draft.references(address)]
    if not unredeemed:
        raise Impossible
    draft.spend(draft.references(unredeemed[0])[0])
    draft.pay(lost, ADA)
    return draft.done(draft.random.choice(draft.cast.byron_people))


KINDS = [TransactionKind(pay, since="byron", until="byron"), TransactionKind(redeem, since="byron", until="byron")]
