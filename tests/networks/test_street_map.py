"""The page with a street map: every road and node, labels, three views."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pzos.networks import Network, generated_city, with_elastic_demand, write_map
from pzos.networks.maps import LESS, MORE, ROAD, toll_colour


def drawn(path: Path) -> dict:
    return json.loads(re.search(r"const map = (.*);\n", path.read_text(encoding="utf-8"))[1])


def test_every_link_and_node_has_a_label_and_three_looks(city: Network, tmp_path: Path) -> None:
    before, after = city.assign(), city.assign(city.tolls_on(np.array([7, 9]), [2.0, -0.5]))
    write_map(before, after, tmp_path / "map.html", title="a <city>")
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert "a &lt;city&gt;" in page
    assert "> no tolls</label>" in page
    assert "$" not in re.sub(r"\$\{", "", page)  # every place of the template is filled in
    found = drawn(tmp_path / "map.html")
    assert (len(found["links"]), len(found["nodes"])) == (city.links, city.nodes)
    link, change = found["links"][7], after.flow - before.flow
    assert link["name"] == f"{city.node_ids[city.tail[7]]} → {city.node_ids[city.head[7]]}"
    assert (link["before"], link["after"], link["toll"]) == (before.flow[7], after.flow[7], 2.0)
    assert link["colours"]["before"] == ROAD != link["colours"]["after"]
    for i, each in enumerate(found["links"]):
        much = abs(change[i]) > 0.02 * np.abs(change).max()
        assert each["colours"]["difference"] == (MORE if change[i] > 0 else LESS) or not much
    assert np.argmax([each["widths"]["difference"] for each in found["links"]]) == np.argmax(np.abs(change))
    write_map(after, before, tmp_path / "map.html")
    assert "> before</label>" in (tmp_path / "map.html").read_text(encoding="utf-8")  # it has tolls


def test_only_roads_are_drawn_and_places_may_be_missing(city: Network, tmp_path: Path) -> None:
    for network in (with_elastic_demand(city, 0.3), replace(city, coordinates=None)):
        state = network.assign(gap=1e-6)
        write_map(state, state, tmp_path / "map.html")
        found = drawn(tmp_path / "map.html")
        assert len(found["links"]) == city.links
        assert len(found["nodes"]) == city.nodes
    assert "no coordinates: laid out by length" in (tmp_path / "map.html").read_text(encoding="utf-8")


def test_roads_of_a_large_city_are_wide_enough_to_compare(tmp_path: Path) -> None:
    state = generated_city(30, 30, zones=4, seed=1).assign(gap=1e-4)
    write_map(state, state, tmp_path / "map.html")
    widths = [link["widths"]["before"] for link in drawn(tmp_path / "map.html")["links"]]
    assert max(widths) > 6.0  # of 1000
    assert max(widths) > 4.0 * min(widths)


@pytest.mark.parametrize(("toll", "same"), [(0.0, True), (1e-4, True), (-1.0, False), (0.5, False), (1.0, False)])
def test_tolls_have_colours(toll: float, same: bool) -> None:
    assert (toll_colour(toll, 1.0) == ROAD) is same
