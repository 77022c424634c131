"""The pages: stories of studies or a reproduction of the paper in, one HTML file out, which opens without a network.

Layout and style of both stand in one template, ``page.html.j2``; here is only what it is given.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pzos.base.checks import printable
from pzos.base.errors import MissingExtra
from pzos.base.frames import spare_study
from pzos.report.charts import bundle, charts
from pzos.report.story import Story

if TYPE_CHECKING:
    from jinja2 import Template

#: Decisions shown in the table; of more, those that changed most.
_TABLE_ROWS = 400


class Cell(NamedTuple):
    """A cell of a table that leads somewhere."""

    text: str
    link: str


class Table(NamedTuple):
    """Rows of plain texts or cells, named by their first; ``kind`` says how the table is laid out."""

    kind: str
    rows: Sequence[Sequence[str | Cell]]
    head: Sequence[str] = ()


def _without_controls(value: Any) -> Any:
    return printable(value) if type(value) is str else value


def page_template() -> Template:
    """Return the template of every page; what is put into it is escaped."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtra("jinja2", "report", "writing a page") from error
    environment = Environment(
        loader=PackageLoader("pzos.report", ""),
        autoescape=True,
        finalize=_without_controls,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")


# ---- studies ----------------------------------------------------------------------------------------------------


def write_report(stories: Sequence[Story], path: str | Path) -> Path:
    """Write the page about ``stories`` and return where it is."""
    place = spare_study(path)
    text = page(stories)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return place


def page(stories: Sequence[Story]) -> str:
    """Return the whole page about ``stories``."""
    title = stories[0].name if len(stories) == 1 else f"{len(stories)} studies"
    rows = [
        (Cell(story.name, f"#study-{number}"), story.status, _headline(story)) for number, story in enumerate(stories)
    ]
    return page_template().render(
        title=title,
        tab=f"{title}: report",
        studies=[_study(story) for story in stories],
        overview=Table("plain", rows, ("study", "state", "F")),
        charts=charts(stories),
        plotly=bundle(),
    )


def _headline(story: Story) -> str:
    if not story.curve.values.size:
        return "F is not known here"
    best = story.curve.best(story.sense)[-1]
    return f"F went from {story.curve.values[0]:.6g} to {best:.6g}"


def _study(story: Story) -> dict[str, Any]:
    """Return what the template says about one study."""
    before, after = (story.before, story.after) if story.before.size == story.after.size else (np.empty(0),) * 2
    shown = np.sort(np.argsort(-np.abs(after - before), kind="stable")[:_TABLE_ROWS])
    rows = [
        (story.label(int(at)), f"{before[at]:.6g}", f"{after[at]:.6g}", f"{after[at] - before[at]:+.3g}")
        for at in shown
    ]
    return {
        "story": story,
        "summary": f"{story.status}. {_headline(story)}",
        "asked": Table("names", story.asked),
        "method": Table("names", (*story.method, *story.versions)),
        "decision": Table("numbers", rows, ("decision", "before", "after", "change")),
        "left_out": before.size - shown.size,
    }


# ---- a reproduction of the paper --------------------------------------------------------------------------------


#: How a verdict is coloured.
_VERDICTS = {"holds": "yes", "does not hold": "no", "too small to judge": "open", "measured": "open"}


def write_reproduction(folder: Path, reports: list[dict[str, Any]], summary: str, command: str) -> None:
    """Write index.html from the figures' own descriptions, which lie beside it with their pictures."""
    figures = [
        report
        | {
            "verdicts": _tally(report["claims"]),
            "picture": base64.b64encode((folder / f"{report['name']}.png").read_bytes()).decode(),
        }
        for report in reports
    ]
    text = page_template().render(
        title="Partial zeroth-order methods for MPECs: the paper's experiments, reproduced",
        tab="Reproduction of the paper",
        summary=f"{summary}. Every number is in the CSV files beside this page; rerun all",
        command=command,
        classes=_VERDICTS,
        figures=figures,
        charts={},
    )
    (folder / "index.html").write_text(text, encoding="utf-8")


def _tally(claims: list[dict[str, Any]]) -> str:
    """Return in a few words how many claims of the paper hold in a figure."""
    verdicts = [claim["verdict"] for claim in claims if claim["source"] == "paper"]
    return f"{verdicts.count('holds')} of {len(verdicts)} claims hold" if verdicts else ""
