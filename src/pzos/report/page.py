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
from pzos.base.columns import Column, Columns
from pzos.base.errors import MissingExtra
from pzos.base.frames import spare_study
from pzos.base.types import Matrix, Vector
from pzos.report.charts import FEW, bundle, charts
from pzos.report.story import Point, Story

if TYPE_CHECKING:
    from jinja2 import Template

#: Rows of a table that the page holds at all, the largest changes first.
_MOST_ROWS = 2000


class Cell(NamedTuple):
    """A cell of a table that leads somewhere."""

    text: str
    link: str


class Table(NamedTuple):
    """Rows of plain texts or cells, named by their first; ``kind`` says how the table is laid out.

    Rows that are ``folded`` open on a click; ``note`` says how many there are.
    """

    kind: str
    rows: Sequence[Sequence[str | Cell]]
    head: Sequence[str] = ()
    folded: Sequence[Sequence[str | Cell]] = ()
    note: str = ""


def _without_controls(value: Any) -> Any:
    return printable(value) if type(value) is str else value


def page_template(name: str = "page.html.j2") -> Template:
    """Return the template of a page; what is put into it is escaped."""
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
    return environment.get_template(name)


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
        overview=Table("plain", rows, ("study", "state", "what was reached")),
        charts=charts(stories),
        plotly=bundle(),
    )


def _headline(story: Story) -> str:
    if not story.curve.values.size:
        return f"the {story.cost} is not known here"
    best = story.curve.best(story.sense)[-1]
    return f"{story.cost} went from {story.amount(story.curve.values[0])} to {story.amount(best)}"


def _study(story: Story) -> dict[str, Any]:
    """Return what the template says about one study."""
    total = max(sum(story.ledger.values()), 1)
    return {
        "story": story,
        "decision": decision_table(story),
        "followers": followers_table(story),
        "money": [
            (name, f"{count:,}", f"{100 * count / total:.0f} %") for name, count in story.ledger.items() if count
        ],
        "made": Table("names", (*story.asked, *story.method, *story.versions)),
    }


def decision_table(story: Story) -> Table:
    """Return the decision beside doing nothing and the start, with F above; in their order where few."""
    points = [point for point in story.points if point.x.size == story.points[-1].x.size]
    since = max(len(points) - 2, 0)  # the start; doing nothing, if it is there, is before it
    few = bool(points) and points[-1].x.size <= FEW
    table = _table(points, [point.x for point in points], story.decisions, "decision", since, in_order=few)
    values = [point.value for point in points]
    if all(value != value for value in values):
        return table
    change = values[-1] - values[since]
    cells = [
        str(Column(story.cost, story.unit)),
        *map(Column().shown, values),
        f"{change:+.6g}" if change == change else "",
    ]
    return table._replace(rows=[cells[: len(table.head)], *table.rows])


def followers_table(story: Story) -> Table:
    """Return what the followers did at these points, the largest changes first."""
    size = story.points[-1].y.size if story.points else 0
    points = [point for point in story.points if point.y.size == size and size]
    return _table(points, [point.y for point in points], story.responses, "followers")


def _table(
    points: Sequence[Point], vectors: Sequence[Vector], named: Columns, what: str, since: int = 0, *,
    in_order: bool = False,
) -> Table:  # fmt: skip
    """Return a row for each entry of the vectors; texts are made only of the rows that the page holds."""
    numbers = np.array(vectors, ndmin=2)  # without points: no entries
    size = numbers.shape[1]
    columns = named.of(size)
    changes = numbers[-1] - numbers[since]
    order = range(size) if in_order else _largest_first(changes, numbers, columns)
    letter = "x" if what == "decision" else "y"
    cells = []
    for at in order[:_MOST_ROWS]:
        column, change = columns[at], float(changes[at])
        row = [column.label(letter, at), *map(column.shown, numbers[:, at].tolist())]
        if len(points) > 1:
            row.append(("+" if change > 0 else "") + column.shown(change))
        cells.append(tuple(row))
    head = (f"change from {points[since].name}",) if len(points) > 1 else ()
    note = f"{FEW} of {size:,}, show all" if size > FEW else ""
    if size > _MOST_ROWS:
        note = f"{FEW} of {size:,}, show {_MOST_ROWS:,} (pzos export writes all of them)"
    return Table("numbers", cells[:FEW], (what, *(point.name for point in points), *head), cells[FEW:], note)


def _largest_first(changes: Vector, numbers: Matrix, columns: Sequence[Column]) -> Sequence[int]:
    """Sort by the change; where units differ, by its part of the number itself."""
    sizes = np.abs(changes)
    if len({column.unit for column in columns}) > 1:
        largest = np.abs(numbers).max(axis=0)
        sizes = sizes / np.where(largest == 0.0, 1.0, largest)
    order: list[int] = np.argsort(-sizes, kind="stable").tolist()
    return order


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
