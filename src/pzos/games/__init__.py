"""Games with a model: exact, fast, certified followers and their leaders (paper, Sec. 5).

Names are loaded on first use, so that importing this package stays light (no numba, no scipy).

    SecurityGame             attacker and defender with contest success functions (Sec. 5.2)
    RoutingGame              tolls on congested networks with classes of users (Sec. 5.1)
    CournotGame              a Stackelberg leader among capacitated Cournot firms
    VariationalInequality    any followers given as G(x, y) and a set (Sec. 2)
    Polyhedron, Product      sets for the latter, beside those of pzos.problem.sets
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
