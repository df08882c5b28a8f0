"""A Cardano network for one machine: chains made from a seed or recorded, served as Ogmios 6 and 7 serve them."""
