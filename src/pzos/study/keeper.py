"""What a durable study needs of the file it writes to; :class:`pzos.durable.journal.Journal` is one."""

from __future__ import annotations

from typing import Protocol

from pzos.base.types import Query, Response


class Keeper(Protocol):
    """Where a study writes each answer before it takes it."""

    def append(self, query: Query, response: Response, elapsed: float) -> None:
        """Return when the answer is safe, or raise."""
        ...

    def close(self) -> None:
        """Let others write."""
        ...
