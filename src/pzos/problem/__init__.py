"""What is given: the leader, the follower's interface, the set of decisions, declared structure."""
