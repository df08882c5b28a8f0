"""Pay 5 ada from a devnet's faucet with pycardano's Blockfrost client, and wait until the payment is in a block.

URL=http://127.0.0.1:8080 KEY=iiak_… FAUCET=faucet.skey python pay_with_blockfrost.py
"""

import os
import time

from blockfrost import ApiError
from pycardano import Address, BlockFrostChainContext, Network, PaymentSigningKey, TransactionBuilder, TransactionOutput

ADA = 1_000_000
SEEN_WITHIN_S = 60


def main() -> None:
    """Build, sign and submit a payment, then wait for it."""
    context = BlockFrostChainContext(os.environ["KEY"], base_url=f"{os.environ['URL']}/blockfrost/api")
    faucet = PaymentSigningKey.load(os.environ["FAUCET"])
    address = Address(faucet.to_verification_key().hash(), network=Network.TESTNET)
    receiver = Address(PaymentSigningKey.generate().to_verification_key().hash(), network=Network.TESTNET)

    builder = TransactionBuilder(context)
    builder.add_input_address(address)
    builder.add_output(TransactionOutput(receiver, 5 * ADA))
    tx = builder.build_and_sign([faucet], change_address=address)
    tx_hash = context.submit_tx_cbor(tx.to_cbor())
    submitted_at = time.monotonic()
    print(f"submitted {tx_hash}")

    while time.monotonic() < submitted_at + SEEN_WITHIN_S:
        try:
            transaction = context.api.transaction(tx_hash)
        except ApiError as refusal:
            if refusal.status_code != 404:
                raise
            time.sleep(0.2)
            continue
        print(f"in block {transaction.block_height}, {time.monotonic() - submitted_at:.1f} s later, to {receiver}")
        return
    raise SystemExit(f"not in a block within {SEEN_WITHIN_S} s")


if __name__ == "__main__":
    main()
