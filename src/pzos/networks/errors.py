"""Errors of the road networks: faults in files with their line, and cycles that tolls make negative."""

from __future__ import annotations

from pathlib import Path

from pzos.base.errors import InvalidInput, NotConverged

_SHOWN = 20


class NegativeCycle(InvalidInput):
    """Tolls (subsidies) make a round trip earn money at equilibrium; ``nodes`` names it, first node repeated."""

    def __init__(self, nodes: tuple[int, ...], cost: float, user_class: str) -> None:
        self.nodes = nodes
        way = " -> ".join(str(node) for node in nodes)
        super().__init__(
            f"tolls: the cycle {way} costs {cost:.6g} for class {user_class!r}: expected no cycle of negative cost; "
            "travellers would drive round it for ever, so raise the tolls (lower the subsidies) on its links"
        )


class AboveGap(NotConverged):
    """The equilibrium was not reached to the gap asked for; ``gap`` and ``rounds`` say how far it got."""

    def __init__(self, asked: float, gap: float, rounds: int) -> None:
        self.asked, self.gap, self.rounds = asked, gap, rounds
        super().__init__(
            f"assign: relative gap {gap:.3e} after {rounds} rounds, asked for {asked:.1e}; "
            "ask for a larger gap, allow more rounds, or pass above_gap='return' and look at Assignment.converged"
        )


class FileFaults:
    """Collects the faults of one file, each with its line, and raises them together."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.messages: list[str] = []

    def add(self, line: int | None, message: str) -> None:
        """Note a fault on a line (None: the file as a whole)."""
        place = f"{self.path.name}:{line}" if line else f"{self.path.name}"
        self.messages.append(f"{place}: {message}")

    def raise_if_any(self) -> None:
        """Raise one InvalidInput with all faults (the first twenty, and how many more)."""
        if not self.messages:
            return
        listing = self.messages[:_SHOWN]
        if len(self.messages) > _SHOWN:
            listing.append(f"and {len(self.messages) - _SHOWN} more faults in this file")
        head = f"{self.path}: " if len(listing) == 1 else f"{self.path}: {len(self.messages)} faults\n  - "
        raise InvalidInput(head + "\n  - ".join(listing))


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a text file, or say plainly that it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InvalidInput(
            f"{path}: cannot be read ({error.strerror}): expected a text file; check the path"
        ) from error
