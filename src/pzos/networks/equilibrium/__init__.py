"""The compiled equilibrium of a road network."""
