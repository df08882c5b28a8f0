"""Pay 5 ada from a devnet's faucet with pycardano, and follow the payment until a block confirms it.

OGMIOS=ws://127.0.0.1:1337 URL=http://127.0.0.1:8080 KEY=iiak_… FAUCET=faucet.skey python pay_with_pycardano.py
"""

import os
import time
from contextlib import suppress
from urllib.parse import urlsplit

from ledgerline_client import Ledgerline, LedgerlineError
from pycardano import (
    Address,
    Network,
    OgmiosChainContext,
    PaymentSigningKey,
    Transaction,
    TransactionBuilder,
    TransactionOutput,
)

ADA = 1_000_000
CONFIRMATIONS = 1
CONFIRMED_WITHIN_S = 60
ASK_EVERY_S = 0.2


def main() -> None:
    """Build, sign and submit a payment, then follow it."""
    faucet = PaymentSigningKey.load(os.environ["FAUCET"])
    receiver = Address(PaymentSigningKey.generate().to_verification_key().hash(), network=Network.TESTNET)
    tx = payment(faucet, receiver, 5 * ADA)
    with Ledgerline(os.environ["URL"], api_key=os.environ["KEY"]) as service:
        tx_hash = service.submit_transaction(cbor=tx.to_cbor_hex())["data"]["tx_hash"]
        print(f"submitted {tx_hash}")
        follow(service, tx_hash)
    print(f"paid to {receiver}")


def payment(key: PaymentSigningKey, receiver: Address, lovelace: int) -> Transaction:
    """A signed payment from the address of a key. pycardano reads outputs and parameters from the node."""
    node = urlsplit(os.environ["OGMIOS"])
    sender = Address(key.to_verification_key().hash(), network=Network.TESTNET)
    builder = TransactionBuilder(OgmiosChainContext(node.hostname, node.port, network=Network.TESTNET))
    builder.add_input_address(sender)
    builder.add_output(TransactionOutput(receiver, lovelace))
    return builder.build_and_sign([key], change_address=sender)


def follow(service: Ledgerline, tx_hash: str) -> None:
    """Print each state of a submitted transaction until it is confirmed. What a fork drops is submitted again."""
    submitted_at, printed = time.monotonic(), ""
    while time.monotonic() < submitted_at + CONFIRMED_WITHIN_S:
        found = service.get_submitted_transaction(tx_hash)["data"]
        state, confirmations = found["state"], found["confirmations"]
        if state == "expired":
            raise SystemExit("it has expired: build it again")
        if state == "rolled_back":
            with suppress(LedgerlineError):  # a new block may hold it again already
                service.resubmit_transaction(tx_hash)
        words = state if confirmations is None else f"in block {found['block_no']}, confirmations: {confirmations}"
        if words != printed:
            print(f"{words}, {time.monotonic() - submitted_at:.1f} s later")
            printed = words
        if confirmations is not None and confirmations >= CONFIRMATIONS:
            return
        time.sleep(ASK_EVERY_S)
    raise SystemExit(f"not confirmed within {CONFIRMED_WITHIN_S} s")


if __name__ == "__main__":
    main()
