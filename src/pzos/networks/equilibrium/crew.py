"""Threads that grow the trees of a batch of origins together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from pzos.networks.equilibrium.rounds import Field, grow_trees
from pzos.networks.equilibrium.trees import TreeSpace, tree_space


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
        """Grow the trees of the groups low .. high: each thread takes the next one that is left."""
        left = iter(range(low, high))

        def work(space: TreeSpace) -> None:
            for group in left:
                grow_trees(low, group, group + 1, field, space, mend)

        others = [self._pool.submit(work, space) for space in self._spaces[1 : high - low]]
        work(self._spaces[0])
        for other in others:
            other.result()
