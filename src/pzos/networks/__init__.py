"""Road networks: readers, exact tolled equilibria of several user classes, toll problems, simulators as followers.

>>> from pzos.networks import generated_city
>>> generated_city(seed=0).assign(gap=1e-8).gap <= 1e-8
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
