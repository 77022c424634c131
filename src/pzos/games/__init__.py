"""Games with a model: exact, fast, certified followers and their leaders (paper, Sec. 5).

Names are loaded on first use, so that importing this package stays light (no numba, no scipy).

    SecurityGame             attacker and defender with contest success functions (Sec. 5.2)
    RoutingGame              tolls on congested networks with classes of users (Sec. 5.1)
    CournotGame              a Stackelberg leader among capacitated Cournot firms
    VariationalInequality    any followers given as G(x, y) and a set (Sec. 2)
    Polyhedron, Product      sets for the latter, beside those of pzos.sets
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pzos.games.cournot import CournotGame as CournotGame
    from pzos.games.routing import RoutingGame as RoutingGame
    from pzos.games.security import SecurityGame as SecurityGame
    from pzos.games.vi import VariationalInequality as VariationalInequality
    from pzos.games.vi import variational_follower as variational_follower
    from pzos.games.vi_sets import Polyhedron as Polyhedron
    from pzos.games.vi_sets import Product as Product

_HOMES = {
    "SecurityGame": "security",
    "RoutingGame": "routing",
    "CournotGame": "cournot",
    "VariationalInequality": "vi",
    "variational_follower": "vi",
    "Polyhedron": "vi_sets",
    "Product": "vi_sets",
}

__all__ = [  # loaded by __getattr__
    "CournotGame",
    "Polyhedron",
    "Product",
    "RoutingGame",
    "SecurityGame",
    "VariationalInequality",
    "variational_follower",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
