"""Threads that grow the trees of a batch of origins together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from pzos.networks.equilibrium.rounds import Field, grow_trees
from pzos.networks.equilibrium.trees import tree_space


class Crew:
    """So many threads, each with working arrays of its own for a network's nodes; the caller's is one of them."""

    def __init__(self, threads: int, nodes: int) -> None:
        self._spaces = [tree_space(nodes) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads - 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self._pool.shutdown()

    def grow_trees(self, low: int, high: int, field: Field, mend: bool) -> None:
        """Grow the trees of the groups low .. high, each thread a share of them."""
        workers = min(len(self._spaces), high - low)
        others = [
            self._pool.submit(grow_trees, low, high, worker, workers, field, self._spaces[worker], mend)
            for worker in range(1, workers)
        ]
        grow_trees(low, high, 0, workers, field, self._spaces[0], mend)
        for other in others:
            other.result()
