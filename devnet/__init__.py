"""A Cardano network on one machine: generated or recorded chains, served by Ogmios 6 or 7.

    chain = Generated(Options(seed=7, density=5.0), blocks=3000)    # devnet.generator: preview, Alonzo to Conway
    chain = Generated(options_of("mainnet", seed=7), blocks=500)    # every era, Byron's boundary blocks included
    other = chain.fork(after=2990, seed=8, blocks=15)               # a valid chain with the same blocks[:2991]
    ledger = chain.ledger                                           # unspent outputs, accounts, pools, …
    chain = Recorded(path, PREVIEW, read_genesis(genesis_path))     # without fork and ledger: devnet.blocks, .networks

Each of a chain's `blocks` has `point`, `height`, `ancestor`, `era` and `decoded()`, the JSON of Ogmios 7. To serve it:

    async with NodeServer(chain, dialect=Dialect((7, 0))) as node:  # devnet.server, devnet.dialect; on any free port
        node.url                                                    # ws://127.0.0.1:…; HTTP has /health
        node.grow(3)                                                # make three more blocks
        node.switch(other)                                          # roll back to the last common block, then follow
        node.fork(ancestor, blocks)                                 # the same with an index and any blocks
        node.extend(blocks)
        node.drop_connections()                                     # without a closing frame, like a failing network
        node.delay_s = 0.1                                          # delay each answer
        node.inject(b"not JSON")                                    # answer the next nextBlock with this
        node.mempool.waiting                                        # transactions for the next block
        node.requests["nextBlock"], node.tip, node.connections      # requests so far, the tip, connected clients

From the command line, `python -m devnet serve` serves a chain, and `python -m devnet make` writes one to a file.

The modules, from the parts of a chain to the servers:

    networks, addresses, blocks, parameters    the public networks, and the parts of a chain
    ledger                                     the state that blocks change, forward and back
    cast, draft, headers                       the actors of a generated chain, and the parts of its blocks
    transactions/                              the kinds of transaction in a generated chain
    generator                                  valid chains and forks from a seed
    dialect, refusal                           blocks and errors as each version of Ogmios writes them
    faucet, submitted, rules, mempool          a key with ada, and clients' transactions
    node                                       the selected chain, which grows and forks
    queries, submission, monitor               Ogmios' answers
    session, server, control                   Ogmios in front of the node, and a control port
    demo, demo_folder, demo_process            the whole service on a generated chain: its files and its processes
"""
