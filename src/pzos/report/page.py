"""The page itself: stories in, one HTML file out, which opens without a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from pzos.report import charts as figures
from pzos.report.story import Rows, Story

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 66rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.35rem; margin-top: 2.5rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 0.3rem; }
.table { overflow: auto; }
.long { max-height: 26rem; }
table { border-collapse: collapse; font-size: 0.92rem; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.9rem 0.3rem 0; border-bottom: 1px solid #d0d0d0;
         overflow-wrap: anywhere; }
th[scope=row] { font-weight: 600; }
th.name { white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th.number { text-align: right; }
.numbers { width: 100%; }
code, pre { background: #f2f2f2; padding: 0.1rem 0.3rem; overflow-wrap: anywhere; white-space: pre-wrap; }
.pair { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 1.5rem; }
@media (min-width: 52rem) { .pair { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } }
.note { color: #444; font-size: 0.92rem; }
.words { border-left: 4px solid #0072B2; padding: 0.2rem 0 0.2rem 0.9rem; white-space: pre-wrap; }
"""
_SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
#: Decisions shown in the table; of more, those that changed most.
_TABLE_ROWS = 400


def write_report(stories: Sequence[Story], path: str | Path) -> Path:
    """Write the page about ``stories`` and return where it is."""
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(page(stories), encoding="utf-8")
    return place


def page(stories: Sequence[Story]) -> str:
    """Return the whole page; scripts come last, so that everything can be read before the plots are drawn."""
    title = stories[0].name if len(stories) == 1 else f"{len(stories)} studies"
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{escape(title)}: report</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{escape(title)}</h1>",
        _overview(stories),
        "<h2 id='objective'>Objective</h2>",
        _objective(stories),
    ]
    parts += [_section(story, number, alone=len(stories) == 1) for number, story in enumerate(stories)]
    body = "\n".join(parts)
    plots = _SCRIPT.findall(body)
    scripts = "\n".join([f"<script>{figures.bundle()}</script>", *plots])
    return f"{_SCRIPT.sub('', body)}</main>\n{scripts}\n</body></html>\n"


def _overview(stories: Sequence[Story]) -> str:
    if len(stories) == 1:
        return f"<p>{escape(stories[0].status)}. {escape(_headline(stories[0]))}</p>"
    rows = "".join(
        f"<tr><th scope='row'><a href='#study-{number}'>{escape(story.name)}</a></th><td>{escape(story.status)}</td>"
        f"<td>{escape(_headline(story))}</td></tr>"
        for number, story in enumerate(stories)
    )
    return f"<div class='table'><table><tr><th>study</th><th>state</th><th>F</th></tr>{rows}</table></div>"


def _headline(story: Story) -> str:
    if not story.curve.values.size:
        return "F is not known here"
    best = story.curve.best(story.sense)[-1]
    return f"F went from {story.curve.values[0]:.6g} to {best:.6g}"


def _objective(stories: Sequence[Story]) -> str:
    pieces = []
    for against, title in (("queries", "against queries"), ("seconds", "against time")):
        figure = figures.objective(stories, against)
        if figure is not None:
            pieces.append(f"<div><h3>{title}</h3>{figures.as_html(figure, f'objective-{against}')}</div>")
    if not pieces:
        return "".join(f"<p class='note'>{escape(reason)}</p>" for story in stories for reason in story.missing)
    return f"<div class='pair'>{''.join(pieces)}</div>"


def _section(story: Story, number: int, *, alone: bool) -> str:
    """Return what the page says about one study."""
    parts = [] if alone else [f"<h2 id='study-{number}'>{escape(story.name)}</h2>"]
    level = "h2" if alone else "h3"
    parts += [
        _titled(level, "What was asked", _table(story.asked)),
        _titled(level, "By which method", _table((*story.method, *story.versions))),
        _figure(level, "Step and radius", figures.motion(story), f"motion-{number}"),
        _figure(level, "Where the queries went", figures.ledger(story), f"ledger-{number}"),
        _titled(level, "The decision", _decision(story, number)),
        _roads(story, number, level),
        _titled(level, "How sure are we?", f"<p class='words'>{escape(story.certificate)}</p>"),
        _titled(level, "How to go on", "".join(f"<p>{_line(line)}</p>" for line in story.resume)),
    ]
    parts += [f"<p class='note'>{escape(reason)}</p>" for reason in story.missing]
    return "\n".join(part for part in parts if part)


def _titled(level: str, title: str, body: str) -> str:
    return f"<{level}>{title}</{level}>{body}" if body else ""


def _figure(level: str, title: str, figure: Any | None, name: str) -> str:
    return "" if figure is None else _titled(level, title, figures.as_html(figure, name))


def _table(rows: Rows) -> str:
    body = "".join(
        f"<tr><th scope='row' class='name'>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows
    )
    return f"<div class='table'><table>{body}</table></div>"


def _decision(story: Story, number: int) -> str:
    figure = figures.decision(story)
    if figure is None:
        return ""
    change = np.abs(story.after - story.before)
    shown = np.sort(np.argsort(-change, kind="stable")[:_TABLE_ROWS])
    rows = "".join(
        f"<tr><th scope='row'>{escape(story.label(int(entry)))}</th><td class='number'>{story.before[entry]:.6g}</td>"
        f"<td class='number'>{story.after[entry]:.6g}</td>"
        f"<td class='number'>{story.after[entry] - story.before[entry]:+.3g}</td></tr>"
        for entry in shown
    )
    head = (
        "<tr><th>decision</th>"
        + "".join(f"<th class='number'>{w}</th>" for w in ("before", "after", "change"))
        + "</tr>"
    )
    left_out = story.before.size - shown.size
    note = f" The {shown.size} that changed most are listed; {left_out} are not." if left_out else ""
    return (
        f"<p>Before: the start. After: the {escape(story.after_name)}.{note}</p>"
        + figures.as_html(figure, f"decision-{number}")
        + f"<div class='table long' tabindex='0'><table class='numbers'>{head}{rows}</table></div>"
    )


def _roads(story: Story, number: int, level: str) -> str:
    if story.roads is None:
        return ""
    maps = ""
    for name, first in (("before", True), ("after", False)):
        figure = figures.road_map(story.roads, before=first)
        maps += f"<div><p class='note'>{name}</p>{figures.as_html(figure, f'map-{name}-{number}')}</div>"
    words = "<p>Width: flow. Orange links carry a toll; the dot on a link shows how much.</p>"
    return _titled(level, "On the map", f"{words}<div class='pair'>{maps}</div>")


def _line(line: str) -> str:
    """Return a line of text; one that begins with "$ " is a command or code."""
    return f"<code>{escape(line[2:])}</code>" if line.startswith("$ ") else escape(line)
