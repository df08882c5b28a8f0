"""Pay 5 ada with pycardano over the API, and wait until a block confirms the payment.

URL=http://127.0.0.1:8080 KEY=iiak_… FAUCET=faucet.skey python pay_with_pycardano.py
"""

import os

from ledgerline_client import Ledgerline
from ledgerline_client.chain_context import LedgerlineChainContext
from pycardano import Address, PaymentSigningKey, TransactionBuilder, TransactionOutput

ADA = 1_000_000

with Ledgerline(os.environ["URL"], api_key=os.environ["KEY"]) as service:
    context = LedgerlineChainContext(service)
    payer = PaymentSigningKey.load(os.environ["FAUCET"])
    sender = Address(payer.to_verification_key().hash(), network=context.network)
    receiver = Address(PaymentSigningKey.generate().to_verification_key().hash(), network=context.network)

    builder = TransactionBuilder(context)
    builder.add_input_address(sender)
    builder.add_output(TransactionOutput(receiver, 5 * ADA))
    tx = builder.build_and_sign([payer], change_address=sender)

    tx_hash = context.submit_tx(tx)
    print(f"submitted {tx_hash}")
    transaction = context.wait_for(tx_hash, confirmations=1)
    print(f"in block {transaction['block_no']}, confirmations: 1")
    print(f"paid to {receiver}")
