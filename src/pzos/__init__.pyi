"""The public names of pzos, each once, grouped by what a user does; loaded on first use."""

# Rooms
from . import games as games, networks as networks, stationarity as stationarity, testing as testing

# The problem: what is known, what is queried, where the leader may go
from .problem.leader import (
    check_leader as check_leader,
    Leader as Leader,
    leader_from_functions as leader_from_functions,
)
from .problem.autodiff import (
    leader_from_jax as leader_from_jax,
    leader_from_torch as leader_from_torch,
    outcomes_from_jax as outcomes_from_jax,
    outcomes_from_torch as outcomes_from_torch,
)
from .problem.plain_cost import leader_from_cost as leader_from_cost
from .problem.follower import Answer as Answer, batched as batched, seeded as seeded
from .problem.outcomes import (
    caps as caps,
    Outcomes as Outcomes,
    outcomes_from_functions as outcomes_from_functions,
)
from .problem.grid import whole as whole
from .problem.problem import Known as Known, Problem as Problem
from .base.columns import Columns as Columns
from .problem.intersections import Intersection as Intersection
from .problem.polyhedra import Polyhedron as Polyhedron
from .problem.sets import (
    Ball as Ball,
    Box as Box,
    Budget as Budget,
    Nonnegative as Nonnegative,
    Simplex as Simplex,
    Whole as Whole,
)
from .problem.smooth import smooth_abs as smooth_abs, smooth_max as smooth_max, smooth_norm as smooth_norm
from .problem.structure import (
    answers_between as answers_between,
    answers_nonnegative as answers_nonnegative,
    box as box,
    conserved as conserved,
    nonnegative as nonnegative,
    own_effect as own_effect,
)

# Solve it: in one call, or by hand
from .solving import front as front, maximize as maximize, minimize as minimize, solve as solve
from .study.front import Front as Front
from .study.study import Study as Study
from .study.standing import Standing as Standing
from .study.run import drive as drive, iterate as iterate
from .study.result import Record as Record, Result as Result, Trace as Trace
from .methods.solver import Stop as Stop

# Methods
from .methods.smoothing import PZOS as PZOS, ZOS as ZOS
from .methods.memory import MemoryPZOS as MemoryPZOS, SecantPZOS as SecantPZOS
from .methods.trust_region.solver import CompositeTrustRegion as CompositeTrustRegion
from .methods.front.solver import FrontSolver as FrontSolver
from .methods.trust_region.constrained import ConstrainedTrustRegion as ConstrainedTrustRegion
from .methods.penalty import ExactPenalty as ExactPenalty

# Methods of the related work
from .methods.related import (
    FlaxmanOnePoint as FlaxmanOnePoint,
    FollowerAgnostic as FollowerAgnostic,
    FrankWolfeZO as FrankWolfeZO,
    GFM as GFM,
    GFMPlus as GFMPlus,
    GradientMappingZO as GradientMappingZO,
    GuidedZO as GuidedZO,
    KornowskiShamir as KornowskiShamir,
    NesterovSpokoiny as NesterovSpokoiny,
    PZOBO as PZOBO,
    SPSA as SPSA,
    TwoPhaseGFM as TwoPhaseGFM,
    VarianceReducedZSOL as VarianceReducedZSOL,
    ZOStackelberg as ZOStackelberg,
    ZSOL as ZSOL,
)

# What methods are built from
from .methods.steps import Constant as Constant, Diminishing as Diminishing, DoG as DoG, DoWG as DoWG, Power as Power
from .methods.probes import (
    Central as Central,
    Cycled as Cycled,
    Independent as Independent,
    Midpoint as Midpoint,
    OneSided as OneSided,
    Orthogonal as Orthogonal,
)
from .methods.predictions import (
    BlendPrediction as BlendPrediction,
    FittingMemory as FittingMemory,
    LeaderPrediction as LeaderPrediction,
    ClippedPrediction as ClippedPrediction,
    ModelPrediction as ModelPrediction,
    PairMemory as PairMemory,
    RegressionMemory as RegressionMemory,
    SecantMemory as SecantMemory,
    ZeroPrediction as ZeroPrediction,
)
from .methods.estimators import (
    black_box_estimate as black_box_estimate,
    partial_estimate as partial_estimate,
    predicted_estimate as predicted_estimate,
)

# Where answers come from
from .answers.table import Answers as Answers
from .answers.oracle import Oracle as Oracle
from .answers.command import CommandFollower as CommandFollower
from .answers.cache import Cached as Cached
from .answers.failures import Tolerance as Tolerance, TolerantOracle as TolerantOracle
from .answers.workers import Workers as Workers
from .answers.cluster import as_executor as as_executor, DaskExecutor as DaskExecutor, Renewed as Renewed

# How stationary is it
from .stationarity.certificate import certify as certify
from .stationarity.stopping import StopWhenStationary as StopWhenStationary

# Other projects' interfaces
from .integrations.gest import PzosGenerator as PzosGenerator
from .integrations.scipy import scipy_method as scipy_method

# Types, errors, random numbers
from .base.types import LeaderValue as LeaderValue, Purpose as Purpose, Query as Query, Response as Response
from .base.errors import (
    DamagedStudy as DamagedStudy,
    DifferentStudy as DifferentStudy,
    FollowerFailure as FollowerFailure,
    FollowerTimeout as FollowerTimeout,
    InvalidAnswer as InvalidAnswer,
    InvalidInput as InvalidInput,
    InvalidLeader as InvalidLeader,
    MissingExtra as MissingExtra,
    NotConverged as NotConverged,
    PzosError as PzosError,
    StudyBusy as StudyBusy,
    StudyGone as StudyGone,
    StudyFileError as StudyFileError,
)
from .base.keys import Keys as Keys

__version__: str
