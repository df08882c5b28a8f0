"""Events: subscriptions, the follower that writes their logs, and the ways to read them."""
