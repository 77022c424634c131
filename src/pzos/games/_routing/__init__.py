"""The exact routing follower, compiled."""
