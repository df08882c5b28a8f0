"""The effects of a block, the same for all eras and for valid and failed scripts."""
