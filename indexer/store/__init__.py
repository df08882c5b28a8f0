"""The only writer of a chain: forward.py writes blocks, backward.py undoes them, finish_bulk.py ends bulk.

Consecutive blocks of one epoch are one commit, inside which the tip moves. A long rollback and the end of bulk take
several commits. Beside those three, a file has what one concern does, forward and backward: histories, holders,
outputs and so on. Other modules write, too: `ledger/reader.py` stores data from the node's ledger, and
`snapshot/restore.py` fills an empty chain.
"""
