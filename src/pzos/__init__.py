"""pzos: leader-follower optimisation when the followers can only be queried.

Minimise (or maximise) F(x) = f(x, y*(x)), where the leader's cost f is known and smooth and the followers'
response y*(x) is non-smooth and can only be queried.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names by the module that holds them; nothing is imported until it is used.
_HOMES = {
    "pzos.autodiff.jax": ("leader_from_jax",),
    "pzos.autodiff.torch": ("leader_from_torch",),
    "pzos.cached": ("Cached",),
    "pzos.check": ("check_leader",),
    "pzos.command_follower": ("CommandFollower",),
    "pzos.differences": ("Central", "Midpoint", "OneSided"),
    "pzos.directions": ("Cycled", "Independent", "Orthogonal"),
    "pzos.errors": (
        "DamagedStudy",
        "DifferentStudy",
        "FollowerFailure",
        "FollowerTimeout",
        "InvalidAnswer",
        "InvalidInput",
        "InvalidLeader",
        "MissingExtra",
        "NotConverged",
        "PzosError",
        "StudyBusy",
        "StudyFileError",
    ),
    "pzos.estimators": ("black_box_estimate", "partial_estimate", "predicted_estimate"),
    "pzos.executors": ("DaskExecutor", "Renewed", "as_executor"),
    "pzos.failures": ("Tolerance", "TolerantOracle"),
    "pzos.follower": ("Answer", "batched", "seeded"),
    "pzos.generator_standard": ("PzosGenerator",),
    "pzos.keys": ("Keys",),
    "pzos.leader": ("Leader", "leader_from_functions"),
    "pzos.memories": ("FittingMemory", "PairMemory", "RegressionMemory", "SecantMemory"),
    "pzos.oracle": ("Oracle",),
    "pzos.predictions": ("BlendPrediction", "LeaderPrediction", "ModelPrediction", "ZeroPrediction"),
    "pzos.problem": ("Known", "Problem"),
    "pzos.result": ("Result", "Stop"),
    "pzos.run": ("drive", "iterate", "maximize", "minimize", "solve"),
    "pzos.schedules": ("Constant", "Diminishing"),
    "pzos.sets": ("Ball", "Box", "Budget", "Nonnegative", "Simplex", "Whole"),
    "pzos.solvers.memory": ("MemoryPZOS", "SecantPZOS"),
    "pzos.solvers.smoothing": ("PZOS", "ZOS"),
    "pzos.solvers.trust_region": ("CompositeTrustRegion",),
    "pzos.stationarity": ("StopWhenStationary", "certify"),
    "pzos.steps": ("DoG", "DoWG"),
    "pzos.structure": ("box", "conserved", "nonnegative", "own_effect"),
    "pzos.study": ("Study",),
    "pzos.trace": ("Record", "Trace"),
    "pzos.types": ("LeaderValue", "Purpose", "Query", "Response"),
    "pzos.workers": ("Workers",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = ("games", "networks", "plots", "stationarity", "testing")

__all__ = sorted([*_HOME_OF, "__version__"])

if TYPE_CHECKING:
    from pzos.autodiff.jax import leader_from_jax as leader_from_jax
    from pzos.autodiff.torch import leader_from_torch as leader_from_torch
    from pzos.cached import Cached as Cached
    from pzos.check import check_leader as check_leader
    from pzos.command_follower import CommandFollower as CommandFollower
    from pzos.differences import Central as Central
    from pzos.differences import Midpoint as Midpoint
    from pzos.differences import OneSided as OneSided
    from pzos.directions import Cycled as Cycled
    from pzos.directions import Independent as Independent
    from pzos.directions import Orthogonal as Orthogonal
    from pzos.errors import DamagedStudy as DamagedStudy
    from pzos.errors import DifferentStudy as DifferentStudy
    from pzos.errors import FollowerFailure as FollowerFailure
    from pzos.errors import FollowerTimeout as FollowerTimeout
    from pzos.errors import InvalidAnswer as InvalidAnswer
    from pzos.errors import InvalidInput as InvalidInput
    from pzos.errors import InvalidLeader as InvalidLeader
    from pzos.errors import MissingExtra as MissingExtra
    from pzos.errors import NotConverged as NotConverged
    from pzos.errors import PzosError as PzosError
    from pzos.errors import StudyBusy as StudyBusy
    from pzos.errors import StudyFileError as StudyFileError
    from pzos.estimators import black_box_estimate as black_box_estimate
    from pzos.estimators import partial_estimate as partial_estimate
    from pzos.estimators import predicted_estimate as predicted_estimate
    from pzos.executors import DaskExecutor as DaskExecutor
    from pzos.executors import Renewed as Renewed
    from pzos.executors import as_executor as as_executor
    from pzos.failures import Tolerance as Tolerance
    from pzos.failures import TolerantOracle as TolerantOracle
    from pzos.follower import Answer as Answer
    from pzos.follower import batched as batched
    from pzos.follower import seeded as seeded
    from pzos.generator_standard import PzosGenerator as PzosGenerator
    from pzos.keys import Keys as Keys
    from pzos.leader import Leader as Leader
    from pzos.leader import leader_from_functions as leader_from_functions
    from pzos.memories import FittingMemory as FittingMemory
    from pzos.memories import PairMemory as PairMemory
    from pzos.memories import RegressionMemory as RegressionMemory
    from pzos.memories import SecantMemory as SecantMemory
    from pzos.oracle import Oracle as Oracle
    from pzos.predictions import BlendPrediction as BlendPrediction
    from pzos.predictions import LeaderPrediction as LeaderPrediction
    from pzos.predictions import ModelPrediction as ModelPrediction
    from pzos.predictions import ZeroPrediction as ZeroPrediction
    from pzos.problem import Known as Known
    from pzos.problem import Problem as Problem
    from pzos.result import Result as Result
    from pzos.result import Stop as Stop
    from pzos.run import drive as drive
    from pzos.run import iterate as iterate
    from pzos.run import maximize as maximize
    from pzos.run import minimize as minimize
    from pzos.run import solve as solve
    from pzos.schedules import Constant as Constant
    from pzos.schedules import Diminishing as Diminishing
    from pzos.sets import Ball as Ball
    from pzos.sets import Box as Box
    from pzos.sets import Budget as Budget
    from pzos.sets import Nonnegative as Nonnegative
    from pzos.sets import Simplex as Simplex
    from pzos.sets import Whole as Whole
    from pzos.solvers.memory import MemoryPZOS as MemoryPZOS
    from pzos.solvers.memory import SecantPZOS as SecantPZOS
    from pzos.solvers.smoothing import PZOS as PZOS
    from pzos.solvers.smoothing import ZOS as ZOS
    from pzos.solvers.trust_region import CompositeTrustRegion as CompositeTrustRegion
    from pzos.stationarity import StopWhenStationary as StopWhenStationary
    from pzos.stationarity import certify as certify
    from pzos.steps import DoG as DoG
    from pzos.steps import DoWG as DoWG
    from pzos.structure import box as box
    from pzos.structure import conserved as conserved
    from pzos.structure import nonnegative as nonnegative
    from pzos.structure import own_effect as own_effect
    from pzos.study import Study as Study
    from pzos.trace import Record as Record
    from pzos.trace import Trace as Trace
    from pzos.types import LeaderValue as LeaderValue
    from pzos.types import Purpose as Purpose
    from pzos.types import Query as Query
    from pzos.types import Response as Response
    from pzos.workers import Workers as Workers


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"pzos.{name}")
    raise AttributeError(f"module 'pzos' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_ROOMS})
