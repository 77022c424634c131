"""The page of a reproduction: figures, claims and how to rerun each, in one file that opens offline."""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
img { max-width: 100%; height: auto; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.92rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem; border-bottom: 1px solid #d0d0d0; }
code { background: #f2f2f2; padding: 0.1rem 0.3rem; overflow-wrap: anywhere; }
.yes { color: #00563f; font-weight: 600; white-space: nowrap; } .no { color: #9a3b00; font-weight: 600; }
.note { color: #444; font-size: 0.92rem; }
ul.contents { columns: 2; padding-left: 1.2rem; }
@media (max-width: 44rem) { /* on a phone each claim is a block, not a row of narrow columns */
  ul.contents { columns: 1; }
  tr.head { display: none; }
  tr { display: block; padding: 0.5rem 0; border-bottom: 1px solid #d0d0d0; }
  td { display: block; padding: 0; border: 0; overflow-wrap: anywhere; }
  td:first-child { font-weight: 600; }
}
"""


def write_page(folder: Path, reports: list[dict[str, Any]], command: str) -> None:
    """Write index.html from the figures' own descriptions."""
    claims = [claim | {"figure": report["name"]} for report in reports for claim in report["claims"]]
    held = sum(claim["holds"] for claim in claims)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Reproduction of the paper</title><style>{_STYLE}</style></head><body>",
        "<h1>Partial zeroth-order methods for MPECs: the paper's experiments, reproduced</h1>",
        f"<p>{held} of {len(claims)} claims hold. Every number is in the CSV files beside this page; ",
        f"rerun all with <code>{escape(command)}</code>.</p>",
        f"<ul class='contents'>{''.join(_entry(report) for report in reports)}</ul>",
        "<h2 id='claims'>Claims</h2>",
        _claims_table(claims),
    ]
    parts += [_figure_section(folder, report) for report in reports]
    parts.append("</body></html>\n")
    (folder / "index.html").write_text("\n".join(parts), encoding="utf-8")


def _claims_table(claims: list[dict[str, Any]]) -> str:
    rows = [
        f"<tr><td>{escape(claim['claim'])}</td><td><a href='#{claim['figure']}'>{escape(claim['where'])}</a></td>"
        f"<td>{escape(claim['found'])}</td><td>{_verdict(claim['holds'])}</td></tr>"
        for claim in claims
    ]
    head = "<tr class='head'><th>Claim</th><th>Where</th><th>Found</th><th>Verdict</th></tr>"
    return f"<div class='table'><table>{head}{''.join(rows)}</table></div>"


def _entry(report: dict[str, Any]) -> str:
    held = sum(claim["holds"] for claim in report["claims"])
    claims = f" ({held} of {len(report['claims'])} claims)" if report["claims"] else ""
    return f"<li><a href='#{report['name']}'>{escape(report['title'])}</a>{claims}</li>"


def _verdict(holds: bool) -> str:
    return "<span class='yes'>holds</span>" if holds else "<span class='no'>does not hold</span>"


def _figure_section(folder: Path, report: dict[str, Any]) -> str:
    image = base64.b64encode((folder / f"{report['name']}.png").read_bytes()).decode("ascii")
    choices = "".join(f"<li>{escape(choice)}</li>" for choice in report["choices"])
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return (
        f"<h2 id='{report['name']}'>{escape(report['title'])}</h2>"
        f"<img alt='{escape(report['title'])}' src='data:image/png;base64,{image}'>"
        f"<p>{escape(report['caption'])}</p>"
        + (f"<p class='note'>Choices the paper leaves open:</p><ul class='note'>{choices}</ul>" if choices else "")
        + f"<p class='note'>Numbers: <code>{report['name']}_figure.csv</code>. "
        f"Rerun: <code>{escape(report['rerun'])}</code>. "
        f"Made with {escape(versions)}; configuration in <code>{report['name']}.json</code>.</p>"
    )


def read_reports(folder: Path, order: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read the descriptions of all figures made in this folder so far, in the paper's order."""
    return [
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in order
        if (folder / f"{name}.json").exists() and (folder / f"{name}.png").exists()
    ]
