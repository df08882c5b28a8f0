"""The only writer of a chain: one commit per step, and the tip moves inside it."""
