"""Where the queries went: why each was asked, and which got no answer or one that cost nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pzos.base.types import CACHED_SECONDS, Purpose, Query, Response

#: Purposes and fates as people read them, in the order they are shown.
NAMES = {
    Purpose.ITERATE.value: "at the iterate",
    Purpose.PROBE.value: "probes",
    Purpose.TRIAL.value: "trial points",
    Purpose.CERTIFICATE.value: "for the certificate",
    Purpose.MONITOR.value: "monitoring",
}
FAILED, CACHED = "failed", "cached"


def fate(purpose: str, seconds: float, failure: str) -> str:
    """Return under which name one answered query is counted."""
    if failure:
        return FAILED
    return CACHED if seconds == CACHED_SECONDS else NAMES[purpose]


def ordered(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not zero in the order they are shown."""
    return {name: counts[name] for name in (*NAMES.values(), FAILED, CACHED) if counts.get(name)}


class Ledger:
    """Counts by batches, because that costs next to nothing; what is out of the ordinary is noted one by one."""

    def __init__(self) -> None:
        self._batches: dict[tuple[Purpose, ...], int] = {}
        self._apart: Counter[tuple[str, str]] = Counter()

    def close(self, purposes: tuple[Purpose, ...]) -> None:
        """Count a batch whose queries are all answered."""
        self._batches[purposes] = self._batches.get(purposes, 0) + 1

    def note(self, query: Query, response: Response) -> None:
        """Note a query that failed or was answered by a cache."""
        self._apart[query.purpose.value, fate(query.purpose.value, response.seconds, response.failure)] += 1

    def counts(self, monitoring: int, still_open: Iterable[Query] = ()) -> dict[str, int]:
        """Return how many queries went where; ``still_open`` are those answered of a batch that is not closed."""
        found: Counter[str] = Counter(
            NAMES[query.purpose.value] for query in still_open if query.purpose is not Purpose.MONITOR
        )
        found[NAMES[Purpose.MONITOR.value]] = monitoring
        for purposes, times in self._batches.items():
            for purpose in purposes:
                found[NAMES[purpose.value]] += times
        for (asked_for, name), times in self._apart.items():
            found[NAMES[asked_for]] -= times
            found[name] += times
        return ordered(found)
