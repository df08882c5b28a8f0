"""Where answers come from: servers of chains, nodes, the registry; their clocks, and what is kept or read for all."""
