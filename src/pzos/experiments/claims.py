"""Claims: a sentence, the number it is judged by, the bar of that number, and the verdict of one seed or of several.

What the paper says and what we found beside it are kept apart by ``source``. A finding without a bar is only measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.types import Vector

Truths = npt.NDArray[np.bool_]
Source = Literal["paper", "finding"]
Verdict = Literal["holds", "does not hold", "too small to judge", "measured"]


class Bar(NamedTuple):
    """What a number must be; an ``exact`` bar is about every case there is, so that one seed can refute it."""

    least: float = -np.inf
    most: float = np.inf
    exact: bool = False

    def met(self, number: float) -> bool:
        """Return whether the number meets the bar; what could not be computed does not."""
        return self.least <= number <= self.most

    def __str__(self) -> str:
        limits = (("at least", self.least), ("at most", self.most))
        return " and ".join(f"{word} {limit:g}" for word, limit in limits if np.isfinite(limit))


#: The bar of a share that must be all.
ALL = Bar(least=1.0, exact=True)


class Size(NamedTuple):
    """How many cases a claim was tried on, and how many it takes to judge it."""

    have: int
    least: int
    of: str = "instances"


class Claim(NamedTuple):
    """One sentence and what one seed says about it; the sentence names nothing that was measured."""

    claim: str
    where: str
    found: str
    number: float
    bar: Bar | None
    size: Size
    source: Source = "paper"

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of this seed alone."""
        return judge([self]).verdict


class Judged(NamedTuple):
    """A claim over all seeds: the mean of its number, the 95 % interval of that mean, and the verdict of all seeds."""

    claim: str
    where: str
    source: Source
    verdict: Verdict
    reason: str
    found: str
    bar: str
    number: float | None
    low: float | None
    high: float | None
    numbers: tuple[float | None, ...]

    def report(self) -> dict[str, Any]:
        """Return the fields, and in words the number: over several seeds with its interval and range, and its bar."""
        words = "" if self.number is None else f"{self.number:.3g}"
        if self.low is not None:
            seeds = [number for number in self.numbers if number is not None]
            words += f" [{self.low:.3g}, {self.high:.3g}], {len(seeds)} seeds from {min(seeds):.3g} to {max(seeds):.3g}"
        return self._asdict() | {"words": f"{words} ({self.bar})" if self.bar else words}


def judge(claims: Sequence[Claim]) -> Judged:
    """Judge one claim from what each seed says of it.

    Seeds that agree decide: five on one side of a bar that the mean sits on happen once in 32 times. Where they
    disagree, a claim about every case is refuted, and any other is too small to judge.
    """
    first = claims[0]
    numbers = [claim.number for claim in claims]
    low, high = _interval(numbers)
    verdict, reason = _verdict(claims)
    return Judged(
        first.claim, first.where, first.source, verdict, reason,
        first.found if len(claims) == 1 else f"{first.found} (first seed)",
        "" if first.bar is None else str(first.bar),
        _finite(float(np.mean(numbers))), low, high, tuple(map(_finite, numbers)),
    )  # fmt: skip


def _verdict(claims: Sequence[Claim]) -> tuple[Verdict, str]:
    bar, size = claims[0].bar, claims[0].size
    if size.have < size.least:
        return "too small to judge", f"needs {size.least} {size.of}, has {size.have}"
    if bar is None:
        return "measured", ""
    met = [bar.met(claim.number) for claim in claims]
    if all(met):
        return "holds", ""
    reason = f"in {sum(met)} of {len(met)} seeds" if len(met) > 1 else ""
    return ("too small to judge" if any(met) and not bar.exact else "does not hold"), reason


def _interval(numbers: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the 95 % interval of the mean over seeds by Student's t; one seed has none."""
    if len(numbers) < 2 or not np.isfinite(numbers).all():
        return None, None
    from scipy.special import stdtrit

    mean, count = float(np.mean(numbers)), len(numbers)
    half = float(stdtrit(count - 1, 0.975) * np.std(numbers, ddof=1) / np.sqrt(count))
    return mean - half, mean + half


def _finite(number: float) -> float | None:
    """Return the number, or None for what could not be computed: JSON has no word for it."""
    return float(number) if np.isfinite(number) else None


def counts(claims: Iterable[Mapping[str, Any]]) -> str:
    """Return how many claims of the paper hold and how many findings there are, in words."""
    listed = list(claims)
    paper = [claim["verdict"] for claim in listed if claim["source"] == "paper"]
    held, small = paper.count("holds"), paper.count("too small to judge")
    return (
        f"{held} of {len(paper)} claims of the paper hold, {paper.count('does not hold')} do not, {small} are too "
        f"small to judge; {len(listed) - len(paper)} findings beside it"
    )


# ---- common kinds of claims -------------------------------------------------------------------------------------


def everywhere(claim: str, where: str, condition: Truths, size: Size, words: str = "{}") -> Claim:
    """Return the claim that a condition holds in every entry; found is in how many, like '225 of 225'."""
    return Claim(claim, where, words.format(share(condition)), float(condition.mean()), ALL, size)


def stays_ahead(claim: str, where: str, ours: Vector, theirs: Vector, size: Size, first: int = 1) -> Claim:
    """Return the claim that one curve lies above another from step ``first`` on; found says where it does not."""
    ours, theirs = ours[first:], theirs[first:]
    behind = ours <= theirs
    found = f"at {share(~behind)} iterations"
    if behind.any():
        when = np.flatnonzero(behind) + first
        found += f"; behind between t = {when[0]} and {when[-1]} by at most {np.max(theirs - ours):.1g}"
    return Claim(claim, where, found, float((~behind).mean()), ALL, size)


def measured(claim: Claim) -> Claim:
    """Return a claim as a finding without a bar: a reading stricter than the sentence's context."""
    return claim._replace(bar=None, source="finding")


def share(condition: Truths) -> str:
    """Return a count like '225 of 225'."""
    return f"{int(condition.sum())} of {condition.size}"


def rank_correlation(one: Vector, other: Vector) -> float:
    """Return Spearman's rank correlation; nan where there are fewer than three entries or one does not vary."""
    if one.size < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])
