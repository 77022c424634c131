"""The answers in a study file as a table: those it was begun with, and those of its run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pzos.answers.table import Answers
from pzos.base.errors import InvalidInput
from pzos.durable.log import read_study
from pzos.problem.follower import written


def answers_of(path: str | os.PathLike[str]) -> Answers:
    """Return every answer in a study file, also while another process writes it, each with where it is from."""
    contents, place = read_study(path), Path(path)
    told = [event for event in contents.events if event.response is not None]  # what was set aside stays true
    pairs = [(event.query.x, event.response) for event in told if event.response is not None]
    width = next((response.y.size for _, response in pairs if not response.failure), 0)
    if not width:
        if contents.given is None:
            raise InvalidInput(f"{place}: holds no answer: expected some; go on with it first, or leave it out")
        return contents.given
    header = contents.header or {}
    follower = (header.get("identity") or {}).get("problem", {}).get("follower")
    own = Answers(
        np.array([x for x, _ in pairs]),
        np.array([np.full(width, np.nan) if response.failure else response.y for _, response in pairs]),
        seconds=[response.seconds for _, response in pairs],
        gap=[response.gap for _, response in pairs],
        failure=[response.failure for _, response in pairs],
        source=place.name,
        told=str(header.get("created", ""))[:10],
        follower=written(follower if isinstance(follower, dict) else None),
        decisions=contents.columns("decisions").of(pairs[0][0].size),
        responses=contents.columns("responses").of(width),
    )
    return own if contents.given is None else contents.given + own
