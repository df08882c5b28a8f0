"""The wire: what the node says, as Structs of the fields that we use."""
