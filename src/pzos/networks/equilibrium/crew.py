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
        """Grow the trees of the groups low .. high: each thread takes the next piece that is left."""
        spaces = self._spaces[: high - low]
        left = iter(_pieces(low, high, len(spaces)))

        def work(space: TreeSpace) -> None:
            for begin, end in left:
                grow_trees(low, begin, end, field, space, mend)

        others = [self._pool.submit(work, space) for space in spaces[1:]]
        work(spaces[0])
        for other in others:
            other.result()


def _pieces(low: int, high: int, workers: int) -> list[tuple[int, int]]:
    """Return low .. high in pieces, large ones first: a call costs something, and all should end together."""
    pieces = []
    while low < high:
        end = min(low + max((high - low) // (2 * workers), 2), high)
        pieces.append((low, end))
        low = end
    return pieces
