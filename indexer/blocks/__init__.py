"""The effects of a block, in one form for all eras and for valid and failed scripts."""
