"""pzos: leader-follower optimisation when the followers can only be queried.

Minimise (or maximise) F(x) = f(x, y*(x)), where the leader's cost f is known and smooth and the followers'
response y*(x) is non-smooth and can only be queried.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
