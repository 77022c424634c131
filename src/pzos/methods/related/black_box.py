"""Related methods that see F alone: Nesterov-Spokoiny, ZSOL, SPSA, one-point, adapting and approximate followers.

The guarantees in the docstrings are those of the methods' own papers, for their own assumptions. Except where a set is
named they speak of x in R^d; the projection onto the leader's set is then ours. Rates and assumptions were compared
with the abstracts, which are public, and with what ``pzos.tex`` says of the papers; formulas are the published ones
as we know them, and numbers of algorithms and lemmas were not compared with the printed text unless it is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar

from pzos.base.checks import at_least, checked, whole
from pzos.methods.estimators import Answers, Estimate, Plan
from pzos.methods.related.blocks import GAUSSIAN, SIGNS, RayPlan, Rays, Sides, Walk, Walker
from pzos.methods.solver import Task
from pzos.methods.steps import SCHEDULE, Power, Schedule


@dataclass(frozen=True, slots=True)
class NesterovSpokoiny(Walker):
    """Random gradient-free search with Gaussian smoothing, Q + 1 queries a step (key ``nesterov2017spokoiny``).

        g_mu(x) = (F(x + mu u) - F(x)) / mu u,   u ~ N(0, I),   x_{k+1} = P_X(x_k - h_k g_mu(x_k))

    Nesterov and Spokoiny, "Random gradient-free minimization of convex functions", FoCM 17 (2017), the forward
    oracle of their Sec. 3. ``batch`` > 1 averages; theirs is 1.

    *Guarantee*: for convex Lipschitz F, E F(best) - F* -> 0 at a rate at most a power of d slower than subgradients
    (abstract: at most d times more steps); for smooth nonconvex F the mean of |grad F|^2 -> 0. For nonsmooth nonconvex
    F, as here, they bound the gradient of the Gaussian smoothing alone, which is no Goldstein guarantee: normal
    directions leave every ball.
    """

    step: float | Schedule = checked(SCHEDULE, default=0.02)
    _rays: ClassVar[Rays] = GAUSSIAN
    _sides: ClassVar[Sides] = Sides.ONE_SIDED


@dataclass(frozen=True, slots=True)
class ZSOL(Walker):
    """Implicit zeroth-order method for MPECs, one-sided on the sphere, Q + 1 queries a step (key ``cui2023mpec``).

        g_eta(x, v) = (d / eta) (F(x + eta v) - F(x)) v,   v ~ U(S^{d-1}),   x_{k+1} = P_X(x_k - gamma_k g)

    Cui, Shanbhag and Yousefian, "Complexity guarantees for an implicit smoothing-enabled method for stochastic MPECs",
    Math. Programming 198 (2023); their Lemma 1 is the estimator. Exact answers of the followers are the exact variant.

    *Guarantee*: followers given by a variational inequality that is strongly monotone uniformly in x, so that F is
    Lipschitz on X + eta B. Where F is convex, E F(mean iterate) - F* <= eps within O(eps^-2) samples, for diminishing
    gamma_k. The nonconvex statement is that of :class:`VarianceReducedZSOL`.
    """

    step: float | Schedule = checked(SCHEDULE, default=0.02)
    _sides: ClassVar[Sides] = Sides.ONE_SIDED


@dataclass(frozen=True, slots=True)
class VarianceReducedZSOL(ZSOL):
    """ZSOL with batches that grow, N_k = ceil(``batch`` (k + 1)^``growth``): N_k + 1 queries at step k.

    The variance-reduced form of :class:`ZSOL` (same paper, nonconvex case): constant step, and the mean of N_k slopes.

    *Guarantee*: F Lipschitz on X + eta B and X convex; the squared residual of the projected step on the smoothed F is
    below eps, in the mean over a random iterate, within O(1/eps) projections and O(1/eps^2) samples (abstract). That
    pair of rates is N_k ~ k, the default growth; the paper's own exponent was not compared.
    """

    growth: float = checked(at_least(0.0, "a number >= 0", "1 is the growth of the paper's rates"), default=1.0)

    def _count(self, t: int) -> int:
        grown: float = self.batch * (t + 1) ** self.growth
        return ceil(grown)


@dataclass(frozen=True, slots=True)
class SPSA(Walker):
    """Simultaneous perturbation stochastic approximation, 2 Q queries a step.

        g_i = (F(x + c_k u) - F(x - c_k u)) / (2 c_k u_i),   u_i = +-1,   a_k = a/(k+1+A)^0.602,  c_k = c/(k+1)^0.101

    Spall, IEEE Trans. Automatic Control 37 (1992); the gains are the customary ones of Spall (1998). 1/u_i = u_i.

    *Guarantee*: almost sure convergence to a local minimiser, and asymptotic normality, for three times
    differentiable F, gains that diminish as here, and iterates that stay in its domain of attraction. No rate in
    finite time, and nothing for F with kinks.
    """

    step: float | Schedule = checked(SCHEDULE, default=Power(0.1, 0.602, offset=10.0))
    radius: float | Schedule = checked(SCHEDULE, default=Power(0.1, 0.101))
    _rays: ClassVar[Rays] = SIGNS


@dataclass(frozen=True, slots=True)
class FlaxmanOnePoint(Walker):
    """Gradient descent without a gradient: one query a step (key ``flaxman2005``).

        g = (d / delta) F(x + delta v) v,   v ~ U(S^{d-1}),   x_{t+1} = P(x_t - nu g)

    Flaxman, Kalai and McMahan, SODA 2005, Lemma 2.1 and their algorithm BGD. They project onto the set shrunk by
    delta, so that probes stay inside; here x is projected onto the set itself and probes leave it by at most
    ``radius``, as everywhere in this package.

    *Guarantee*: for convex, bounded, Lipschitz costs on a bounded set with interior, expected regret O(T^{3/4}), even
    where an adversary changes the costs. Nothing for nonconvex F. The estimate's size is d F / delta whatever the
    slope, so the step must be tiny: it is here as the price of a single query.
    """

    step: float | Schedule = checked(SCHEDULE, default=Power(1e-4, 0.75))
    radius: float | Schedule = checked(SCHEDULE, default=Power(0.5, 0.25))
    _sides: ClassVar[Sides] = Sides.ONE_POINT


@dataclass(frozen=True, slots=True)
class FollowerAgnostic(Walker):
    """Updates for followers who only adapt between queries: (Q + 1) ``settle`` queries a step (arXiv 2302.01421).

        g = (d / delta_t) (f(x_t + delta_t v, y^K(x_t + delta_t v)) - f(x_t, y^K(x_t))) v,   v ~ U(S^{d-1})

    Maheshwari, Cheng, Sastry, Ratliff and Mazumdar, "Follower agnostic learning in Stackelberg games", CDC 2024. Every
    decision is announced K = ``settle`` times and only the last answer is read: between announcements the followers
    move towards their equilibrium by a rule of their own. With followers who answer y*(x) at once, K = 1.

    *Guarantee* (abstract): where the followers' rule converges, non-asymptotic rates to stationary points of F in the
    absence of convexity, and convergence to a local minimum in the limit; for this F is taken to be smooth.
    Compared with the abstract only: the powers of t in the step and the radius are ours (1/2 and 1/4).
    """

    step: float | Schedule = checked(SCHEDULE, default=Power(0.05, 0.5))
    radius: float | Schedule = checked(SCHEDULE, default=Power(0.2, 0.25))
    settle: int = checked(whole(1, "1 is right for followers who answer at once"), default=1)
    _sides: ClassVar[Sides] = Sides.ONE_SIDED

    def ask(self, task: Task, state: Walk) -> Plan:
        """Plan every point ``settle`` times in a row."""
        plan = self._plan_at(task, state, state.at)
        points = tuple(point for point in plan.points for _ in range(self.settle))
        purposes = tuple(purpose for purpose in plan.purposes for _ in range(self.settle))
        return replace(plan, points=points, purposes=purposes)

    def _estimate(self, task: Task, state: Walk, plan: RayPlan, answers: Answers) -> Estimate | None:
        last = slice(self.settle - 1, None, self.settle)
        once = replace(plan, points=plan.points[last], purposes=plan.purposes[last])
        return Walker._estimate(self, task, state, once, answers[last])


@dataclass(frozen=True, slots=True)
class ZOStackelberg(Walker):
    """Tolls against an equilibrium that is itself computed by Frank-Wolfe: 2 Q queries a step (arXiv 2602.23277).

        g = (d / (2 rho Q)) sum_q (F^(x + rho v_q) - F^(x - rho v_q)) v_q,   x_{t+1} = P_X(x_t - eta g)

    Masiha, Elahi, Kiyavash and Thiran, "Zeroth-order Stackelberg control in combinatorial congestion games" (2026).
    F^ is the leader's cost at the flow of a Frank-Wolfe run of T steps; that half is the follower's
    (``benchmarks/testbed`` has such followers for both games), the solver is the outer loop.

    *Guarantee* (abstract): convergence to generalised Goldstein stationary points of the true F, with an explicit
    term for the error of the equilibrium, which decays as O(1/(kappa T)) when an exact best response is found with
    probability kappa. Compared with the abstract only; the batch of the default is ours.
    """

    batch: int = checked(whole(1, "try batch=2"), default=2)
