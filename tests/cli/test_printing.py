"""What the commands print: JSON that any reader takes, columns that line up, bars that show a course."""

from __future__ import annotations

import argparse
import doctest
import json
import math

import pytest

from pzos.cli import printing


def test_a_line_of_bars_shows_the_course() -> None:
    assert printing.sparkline([1.0] * 5) == "▁▁▁▁▁"
    assert printing.sparkline(range(8)) == "▁▂▃▄▅▆▇█"
    assert len(printing.sparkline(range(1000), 48)) == 48
    assert printing.sparkline([]) == printing.sparkline([math.nan, math.inf]) == ""
    assert not doctest.testmod(printing).failed


def test_a_long_course_keeps_its_ends() -> None:
    falling = printing.sparkline([-float(number) for number in range(1000)])
    assert (falling[0], falling[-1], len(falling)) == ("█", "▁", 60)


def test_numbers_that_json_does_not_know_become_null() -> None:
    text = printing.as_json({"a": [1.5, math.nan, (math.inf, 2)], "b": "nan", "c": True})
    assert json.loads(text) == {"a": [1.5, None, [None, 2]], "b": "nan", "c": True}


@pytest.mark.parametrize(("wanted", "said"), [(True, '{\n "value": null\n}\n'), (False, "in words\n")])
def test_scripts_get_json_and_people_get_text(wanted: bool, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    printing.add_json(parser)
    printing.emit(parser.parse_args(["--json"] if wanted else []), {"value": math.nan}, "in words")
    assert capsys.readouterr().out == said
