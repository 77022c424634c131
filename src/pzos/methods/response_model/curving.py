"""Answers on a curved scale: what explodes far away, as queues do, is smooth once large changes count for less.

The process is told a latent answer z in place of y, entry by entry one of

    z - y_c = s arcsinh((y - y_c)/s)                      large changes count by their logarithm
    z - y_c = y_c ((y/y_c)^p - 1)/p,  log at p = 0        of Box and Cox, for entries that have one sign

Both leave y as it is near y_c, the answer at the centre. Which of them, if any, is decided for each entry by the
likelihood of its answers, the change of scale included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from pzos.base.types import Matrix, Vector
from pzos.methods.response_model.history import Flags, Geometry

#: Scales s, in typical changes of the entry nearby, and powers p that compete.
_SCALES, _POWERS = (10.0, 3.0, 1.0, 0.3), (0.5, 0.0, -0.5, -1.0)
#: By how much the answers of an entry must be more likely on a curved scale (log likelihood).
_MARGIN = 5.0
#: How many logarithms away from the answer at the centre others are told apart: e^20 is 5e8.
_FURTHEST = 20.0
#: On powers below zero what vanishes explodes: so many logarithms of that are kept, a thousandth of y_c at p = -1.
_STEEPEST = 7.0


@dataclass(frozen=True, slots=True, eq=False)
class Curving:
    """For each entry of y the scale of its arcsinh (infinite: none) and its power (1: none)."""

    scales: Vector
    powers: Vector

    @property
    def curved(self) -> Flags:
        """Tell which entries are on a curved scale."""
        flags: Flags = np.isfinite(self.scales) | (self.powers != 1.0)
        return flags

    def only(self, entries: Flags) -> Curving:
        """Return it for these entries alone."""
        return Curving(np.where(entries, self.scales, np.inf), np.where(entries, self.powers, 1.0))

    def suiting(self, answers: Matrix) -> Curving:
        """Return it without powers of entries that have both signs by now."""
        return replace(self, powers=np.where(_of_one_sign(answers), self.powers, 1.0))

    def suits(self, answers: Matrix) -> bool:
        """Tell whether no entry on a power has both signs by now."""
        return bool((_of_one_sign(answers) | (self.powers == 1.0)).all())

    def latent(self, changes: Matrix, centre: Vector) -> tuple[Matrix, Matrix]:
        """Return z - y_c for changes y - y_c, row by row, and log dz/dy."""
        latent, logs = changes.copy(), np.zeros_like(changes)
        rows = np.isfinite(self.scales)
        scaled = changes[:, rows] / self.scales[rows]
        latent[:, rows], logs[:, rows] = self.scales[rows] * np.arcsinh(scaled), -np.log(np.hypot(1.0, scaled))
        rows = self.powers != 1.0
        base, p = centre[rows], self.powers[rows]
        least = np.where(p < 0.0, np.minimum(_FURTHEST, _STEEPEST / np.maximum(-p, 1e-9)), _FURTHEST)
        ratio = np.log(np.maximum(1.0 + changes[:, rows] / base, np.exp(-least)))
        divisor = np.where(p == 0.0, 1.0, p)
        latent[:, rows] = base * np.where(p == 0.0, ratio, np.expm1(p * ratio) / divisor)
        logs[:, rows] = (p - 1.0) * ratio
        return latent, logs

    def shown(self, z: Matrix, centre: Vector) -> tuple[Matrix, Matrix]:
        """Return y for a latent z, or for each row of a stack, and dy/dz: 0 beyond what is told apart."""
        y, slope = z.copy(), np.ones_like(z)
        rows = np.isfinite(self.scales)
        base, s = centre[rows], self.scales[rows]
        scaled = (z[..., rows] - base) / s
        kept = np.clip(scaled, -_FURTHEST, _FURTHEST)
        y[..., rows], slope[..., rows] = base + s * np.sinh(kept), np.where(kept == scaled, np.cosh(kept), 0.0)
        rows = self.powers != 1.0
        base, p = centre[rows], self.powers[rows]
        scaled = (z[..., rows] - base) / base
        powered = np.log(np.maximum(1.0 + p * scaled, np.exp(-_FURTHEST))) / np.where(p == 0.0, 1.0, p)
        ratio = np.where(p == 0.0, scaled, powered)
        kept = np.clip(ratio, -_FURTHEST, _FURTHEST)
        beyond = (kept != ratio) | (1.0 + p * scaled < np.exp(-_FURTHEST))
        y[..., rows], slope[..., rows] = base * np.exp(kept), np.where(beyond, 0.0, np.exp((1.0 - p) * kept))
        return y, slope


def _of_one_sign(answers: Matrix) -> Flags:
    return np.logical_or((answers > 0.0).all(axis=0), (answers < 0.0).all(axis=0))


def likeliest(seen: Geometry, slopes: Matrix, centre: Vector, factor: Matrix, noisy: bool = False) -> Curving:
    """Return for each entry the scale on which its answers are clearly likeliest, given the factor of their K.

    Of ``noisy`` answers powers alone: an arcsinh makes large changes of noise, and of either sign.
    """
    changes, lengths, count = slopes * seen.lengths[:, None], seen.lengths[:, None], seen.count
    nearby = np.argsort(seen.lengths)[: max(seen.sizes.size + 1, count // 2)]
    typical = np.median(np.abs(changes[nearby]), axis=0)
    typical = np.where(typical > 0.0, typical, np.inf)

    def surprise(candidate: Curving) -> Vector:
        """Return -log p of each entry, its variance profiled out."""
        latent, logs = candidate.latent(changes, centre)
        white = solve_triangular(factor, latent / lengths, lower=True, check_finite=False)
        variances = np.maximum(np.einsum("ij,ij->j", white, white) / count, 1e-300)
        total: Vector = 0.5 * count * np.log(variances) - logs.sum(axis=0)
        return total

    found = Curving(np.full(centre.size, np.inf), np.ones(centre.size))
    least = surprise(found) - _MARGIN
    of_one_sign = _of_one_sign(np.vstack([changes + centre, centre]))
    for candidate in _candidates(np.full_like(typical, np.inf) if noisy else typical, of_one_sign):
        score = surprise(candidate)
        better = score < least
        least = np.where(better, score, least)
        found = Curving(
            np.where(better, candidate.scales, found.scales), np.where(better, candidate.powers, found.powers)
        )
    return found


def _candidates(typical: Vector, of_one_sign: Flags) -> Iterator[Curving]:
    for scale in _SCALES:
        yield Curving(scale * typical, np.ones(typical.size))
    for power in _POWERS:
        yield Curving(np.full(typical.size, np.inf), np.where(of_one_sign, power, 1.0))
