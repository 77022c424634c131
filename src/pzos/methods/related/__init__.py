"""Methods of the related work as solvers: the same ask and tell, on the same problems, counted by the same queries.

Each is its paper's algorithm, with its own guarantee and default parameters in its docstring; all take steps projected
onto the leader's set. They differ in what they query and how they read it:

=================================  ==================================  ======================  =========================
solver                             directions and points               queries a step          steps and output
=================================  ==================================  ======================  =========================
:class:`pzos.PZOBO`                Gaussian, one-sided, of y*          Q + 1                   last
:class:`pzos.GuidedZO`             Gaussian along grad_x f, central    2 Q + 1 (2 Q)           last
:class:`pzos.NesterovSpokoiny`     Gaussian, one-sided, of F           Q + 1                   last
:class:`pzos.ZSOL`                 sphere, one-sided, of F             Q + 1                   last
:class:`pzos.VarianceReducedZSOL`  sphere, one-sided, of F             N_k + 1, growing        last
:class:`pzos.SPSA`                 signs, central, of F                2 Q                     diminishing, last
:class:`pzos.FlaxmanOnePoint`      sphere, one point, of F             Q                       diminishing, last
:class:`pzos.FollowerAgnostic`     sphere, one-sided, of F             (Q + 1) K               diminishing, last
:class:`pzos.ZOStackelberg`        sphere, central, of F               2 Q                     last
:class:`pzos.GFM`                  sphere, central, of F               2 Q                     random iterate
:class:`pzos.TwoPhaseGFM`          sphere, central, of F               2 Q, at the end 2 S B   best output of S runs
:class:`pzos.GFMPlus`              sphere, central, of F               2 b' or 4 Q             recursive, random iterate
:class:`pzos.KornowskiShamir`      sphere, central, of F               2 Q                     clipped, mean of a block
:class:`pzos.GradientMappingZO`    sphere, central, of F               2 Q                     random iterate
:class:`pzos.FrankWolfeZO`         sphere, central, of F               2 Q                     Frank-Wolfe, last
=================================  ==================================  ======================  =========================

None of them remembers answers beyond a step, except GFM+ its last estimate and guided zeroth order its guide.
"""

from pzos.methods.related.black_box import (
    SPSA as SPSA,
    ZSOL as ZSOL,
    FlaxmanOnePoint as FlaxmanOnePoint,
    FollowerAgnostic as FollowerAgnostic,
    NesterovSpokoiny as NesterovSpokoiny,
    VarianceReducedZSOL as VarianceReducedZSOL,
    ZOStackelberg as ZOStackelberg,
)
from pzos.methods.related.goldstein import (
    GFM as GFM,
    FrankWolfeZO as FrankWolfeZO,
    GFMPlus as GFMPlus,
    GradientMappingZO as GradientMappingZO,
    KornowskiShamir as KornowskiShamir,
    TwoPhaseGFM as TwoPhaseGFM,
)
from pzos.methods.related.partial import PZOBO as PZOBO, GuidedZO as GuidedZO
