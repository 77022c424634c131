"""The public names of pzos.games."""

from .cournot import CournotGame as CournotGame
from .routing import RoutingGame as RoutingGame
from .security import SecurityGame as SecurityGame
from .vi import (
    Polyhedron as Polyhedron,
    Product as Product,
    VariationalInequality as VariationalInequality,
    variational_follower as variational_follower,
)
