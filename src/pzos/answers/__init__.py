"""Where answers come from: the one door to the follower, workers, clusters, commands, caches, failures."""
