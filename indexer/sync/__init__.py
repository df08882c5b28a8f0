"""The loop that follows the tip of the node, from frames to commits."""
