"""A Cardano network for one machine: chains made from a seed or recorded, served as Ogmios 6 and 7 serve them.

A chain is anything with `network`, `genesis`, `eras`, `blocks` and `grow(count)`:

    chain = Generated(Options(seed=7, density=5.0), blocks=3000)    # devnet.generator; preview, Alonzo to Conway
    chain = Generated(options_of("mainnet", seed=7), blocks=500)    # Byron with boundary blocks to Conway
    chain = Recorded(path, PREVIEW, read_genesis(genesis_path))     # devnet.blocks, devnet.networks
    other = chain.fork(after=2990, seed=8, blocks=15)               # a valid chain that shares blocks[:2991]
    ledger = chain.ledger                                           # of a generated one: unspent, accounts, pools, …

Each of its `blocks` has `point`, `height`, `ancestor`, `era` and `decoded()`, the JSON of Ogmios 7. A server plays it:

    async with Server(chain, dialect=Dialect((7, 0))) as node:      # devnet.server, devnet.dialect; port 0 is any
        node.url                                                    # ws://127.0.0.1:…, and /health over HTTP
        node.grow(3)                                                # the chain makes more blocks
        node.switch(other)                                          # roll back to what both have, then its blocks
        node.fork(ancestor, blocks)                                 # the same by hand: an index and any blocks
        node.extend(blocks)
        node.drop_connections()                                     # as a network does, without a closing frame
        node.delay_s = 0.1                                          # hold each answer back
        node.inject(b"no JSON")                                     # the answer to the next nextBlock
        node.requests["nextBlock"], node.tip, node.connections      # what was asked, where it stands, who listens

`python -m devnet serve` does that from the command line, `python -m devnet make` writes a chain to a file.
"""
