"""Theory you can call: the theorem's constants and schedules, smoothed objects, and certificates of stationarity.

The doors are :func:`certify` (is x stationary, and how sure are we?), :func:`certify_hull`, :func:`theorem_schedule`,
:func:`estimate_constants` and :func:`smoothed_objects`; each certificate is a solver that asks one batch, so any study
and any oracle can drive it. Nothing is imported until it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "bounds": ("NormBound", "finite_sample_bound", "norm_upper_bound"),
    "certificate": ("Certificate", "CertificateSolver", "certify"),
    "constants": ("Constants", "published_moment_constant", "sharp_moment_constant", "smoothing_constant"),
    "hull": ("MinNorm", "min_norm_point"),
    "hull_certificate": ("HullReport", "HullSolver", "certify_hull"),
    "lipschitz": ("LipschitzEstimates", "LipschitzSolver", "estimate_constants"),
    "piecewise": ("Interval", "PiecewiseResponse", "goldstein_interval", "partial_goldstein_interval", "threshold"),
    "schedules": ("TheoremSchedule", "theorem_schedule"),
    "smoothed": ("SmoothedReport", "SmoothingSolver", "smoothed_objects"),
    "stopping": ("StopWhenStationary",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)

if TYPE_CHECKING:
    from pzos.stationarity.bounds import NormBound as NormBound
    from pzos.stationarity.bounds import finite_sample_bound as finite_sample_bound
    from pzos.stationarity.bounds import norm_upper_bound as norm_upper_bound
    from pzos.stationarity.certificate import Certificate as Certificate
    from pzos.stationarity.certificate import CertificateSolver as CertificateSolver
    from pzos.stationarity.certificate import certify as certify
    from pzos.stationarity.constants import Constants as Constants
    from pzos.stationarity.constants import published_moment_constant as published_moment_constant
    from pzos.stationarity.constants import sharp_moment_constant as sharp_moment_constant
    from pzos.stationarity.constants import smoothing_constant as smoothing_constant
    from pzos.stationarity.hull import MinNorm as MinNorm
    from pzos.stationarity.hull import min_norm_point as min_norm_point
    from pzos.stationarity.hull_certificate import HullReport as HullReport
    from pzos.stationarity.hull_certificate import HullSolver as HullSolver
    from pzos.stationarity.hull_certificate import certify_hull as certify_hull
    from pzos.stationarity.lipschitz import LipschitzEstimates as LipschitzEstimates
    from pzos.stationarity.lipschitz import LipschitzSolver as LipschitzSolver
    from pzos.stationarity.lipschitz import estimate_constants as estimate_constants
    from pzos.stationarity.piecewise import Interval as Interval
    from pzos.stationarity.piecewise import PiecewiseResponse as PiecewiseResponse
    from pzos.stationarity.piecewise import goldstein_interval as goldstein_interval
    from pzos.stationarity.piecewise import partial_goldstein_interval as partial_goldstein_interval
    from pzos.stationarity.piecewise import threshold as threshold
    from pzos.stationarity.schedules import TheoremSchedule as TheoremSchedule
    from pzos.stationarity.schedules import theorem_schedule as theorem_schedule
    from pzos.stationarity.smoothed import SmoothedReport as SmoothedReport
    from pzos.stationarity.smoothed import SmoothingSolver as SmoothingSolver
    from pzos.stationarity.smoothed import smoothed_objects as smoothed_objects
    from pzos.stationarity.stopping import StopWhenStationary as StopWhenStationary


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(f"pzos.stationarity.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pzos.stationarity' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
