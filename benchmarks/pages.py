"""What opening a report costs in headless Chromium: until its text is painted, and until the charts in sight are drawn.

    python benchmarks/pages.py REPORT.html ...

CPU seconds of the page's own process, a fresh browser for each opening (``--repeats``): wall times on a busy machine
mean little.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browser.chromium import Browser, browser

WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}


def cpu(page: Browser) -> float:
    """Return the CPU seconds that the page's process has used."""
    return next(one["value"] for one in page.call("Performance.getMetrics")["metrics"] if one["name"] == "ProcessTime")


def opened(path: Path, size: str) -> tuple[float, float, float]:
    """Return CPU seconds until the page had loaded and until its charts were drawn, and when text was painted."""
    with browser() as page:
        page.call("Performance.enable")
        start = cpu(page)
        page.open(path, *WIDTHS[size], phone=size == "phone")
        loaded = cpu(page) - start
        page.draw()
        drawn = cpu(page) - start
        painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        return loaded, drawn, painted / 1000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    for path in asked.pages:
        for size in WIDTHS:
            runs = [opened(path, size) for _ in range(asked.repeats)]
            loaded, drawn, painted = (statistics.median(column) for column in zip(*runs, strict=True))
            print(f"{path.name}, {size}: {loaded:.2f} s loaded, {drawn:.2f} s drawn (CPU); text after {painted:.2f} s")


if __name__ == "__main__":
    main()
