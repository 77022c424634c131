"""The public names of pzos.stationarity."""

from .bounds import (
    NormBound as NormBound,
    finite_sample_bound as finite_sample_bound,
    norm_upper_bound as norm_upper_bound,
)
from .certificate import (
    Certificate as Certificate,
    CertificateSolver as CertificateSolver,
    ConstrainedCertificateSolver as ConstrainedCertificateSolver,
    certify as certify,
)
from .hull import (
    HullReport as HullReport,
    HullSolver as HullSolver,
    MinNorm as MinNorm,
    certify_hull as certify_hull,
    min_norm_point as min_norm_point,
)
from .lipschitz import (
    LipschitzEstimates as LipschitzEstimates,
    LipschitzSolver as LipschitzSolver,
    estimate_constants as estimate_constants,
)
from .multipliers import Constraints as Constraints
from .neighbours import NeighbourCertificate as NeighbourCertificate, NeighbourSolver as NeighbourSolver
from .piecewise import (
    Interval as Interval,
    PiecewiseResponse as PiecewiseResponse,
    goldstein_interval as goldstein_interval,
    partial_goldstein_interval as partial_goldstein_interval,
    threshold as threshold,
)
from .planning import Setting as Setting, WorstCase as WorstCase, worst_case as worst_case
from .smoothed import (
    SmoothedReport as SmoothedReport,
    SmoothingSolver as SmoothingSolver,
    smoothed_objects as smoothed_objects,
)
from .stopping import StopWhenStationary as StopWhenStationary
from .theory import (
    Constants as Constants,
    TheoremSchedule as TheoremSchedule,
    published_moment_constant as published_moment_constant,
    sharp_moment_constant as sharp_moment_constant,
    smoothing_constant as smoothing_constant,
    theorem_schedule as theorem_schedule,
)
