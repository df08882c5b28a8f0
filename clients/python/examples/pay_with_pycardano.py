"""Pay 5 ada from a devnet's faucet with pycardano, and wait until the payment is in the history of its address.

OGMIOS=ws://127.0.0.1:1337 URL=http://127.0.0.1:8080 KEY=iiak_… FAUCET=faucet.skey python pay_with_pycardano.py
"""

import os
import time
from urllib.parse import urlsplit

from ledgerline_client import Ledgerline, LedgerlineError
from pycardano import Address, Network, OgmiosChainContext, PaymentSigningKey, TransactionBuilder, TransactionOutput

ADA = 1_000_000
SEEN_WITHIN_S = 60


def main() -> None:
    """Build, sign and submit a payment, then wait for it."""
    node = urlsplit(os.environ["OGMIOS"])
    context = OgmiosChainContext(node.hostname, node.port, network=Network.TESTNET)
    faucet = PaymentSigningKey.load(os.environ["FAUCET"])
    address = Address(faucet.to_verification_key().hash(), network=Network.TESTNET)
    receiver = Address(PaymentSigningKey.generate().to_verification_key().hash(), network=Network.TESTNET)

    builder = TransactionBuilder(context)
    builder.add_input_address(address)
    builder.add_output(TransactionOutput(receiver, 5 * ADA))
    tx = builder.build_and_sign([faucet], change_address=address)
    context.submit_tx(tx)
    submitted_at = time.monotonic()
    print(f"submitted {tx.id}")

    with Ledgerline(os.environ["URL"], api_key=os.environ["KEY"]) as service:
        while time.monotonic() < submitted_at + SEEN_WITHIN_S:
            try:
                found = service.get_transaction(str(tx.id))["data"]
            except LedgerlineError as refusal:
                if refusal.code != "transaction_not_found":
                    raise
                time.sleep(0.2)
                continue
            print(f"in block {found['block_no']}, {time.monotonic() - submitted_at:.1f} s later, to {receiver}")
            return
    raise SystemExit(f"not in a block within {SEEN_WITHIN_S} s")


if __name__ == "__main__":
    main()
