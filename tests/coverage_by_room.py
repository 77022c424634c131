"""Print line and branch coverage by room, from a report of ``coverage json``; exit 1 where a room has too few lines.

python tests/coverage_by_room.py build/coverage/report.json
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

LEAST = 90.0


def by_room(report: dict) -> dict[str, Counter]:
    """Add up the counts of the files of each room; the front door and its neighbours are the room ``pzos``."""
    rooms: dict[str, Counter] = defaultdict(Counter)
    for name, file in report["files"].items():
        parts = Path(name).as_posix().split("src/pzos/")[-1].split("/")
        summary = file["summary"]
        counted = {key: summary[key] for key in ("num_statements", "covered_lines", "num_branches", "covered_branches")}
        rooms[parts[0] if len(parts) > 1 else "pzos"].update(counted)
    return dict(rooms)


def main(path: str) -> int:
    """Print the table."""
    rooms = by_room(json.loads(Path(path).read_text(encoding="utf-8")))
    poor = []
    print(f"{'room':<14}{'statements':>11}{'lines %':>9}{'branches %':>12}")
    for room, counts in sorted(rooms.items()):
        lines = 100.0 * counts["covered_lines"] / max(counts["num_statements"], 1)
        branches = 100.0 * counts["covered_branches"] / max(counts["num_branches"], 1)
        print(f"{room:<14}{counts['num_statements']:>11}{lines:>9.1f}{branches:>12.1f}")
        poor += [room] if lines < LEAST else []
    if poor:
        print(f"below {LEAST:g} % of lines: {', '.join(poor)}")
    return bool(poor)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
