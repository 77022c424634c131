"""Theory you can call: the theorem's constants and schedules, smoothed objects, and certificates of stationarity.

The doors are :func:`certify` (is x stationary, and how sure are we?), :func:`certify_hull`, :func:`theorem_schedule`,
:func:`estimate_constants` and :func:`smoothed_objects`; each certificate is a solver that asks one batch, so any study
and any oracle can drive it. Nothing is imported until it is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
