"""The wire: the node's messages, as Structs of the fields that we use."""
