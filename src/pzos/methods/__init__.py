"""How to move: solvers as pure init, ask, tell and stop, and what they are built from. None sees a follower."""
