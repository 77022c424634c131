"""``pzos tolls``: tables, numbers and a map from the command line."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pzos.cli.main import main
from pzos.networks import cordon_links, generated_city, read_tntp, write_gmns, write_tntp

QUICK = ["--queries", "20"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Write a small city as TNTP files."""
    paths = tmp_path / "small_net.tntp", tmp_path / "small_trips.tntp"
    write_tntp(generated_city(4, 4, zones=6, congestion=1.5, seed=1), *paths)
    return str(paths[0]), str(paths[1])


def data(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    assert main(["tolls", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_default_is_a_generated_city(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tolls", *QUICK, "--out", str(tmp_path)]) == 0
    out = capsys.readouterr()
    assert "generated city 7x7" in out.out
    assert out.err == ""  # no bar in a pipe
    for word in (
        "no tolls",
        "uniform",
        "optimised",
        "total travel time",
        "revenue",
        "net benefit of society",
        "20 queries",
    ):
        assert word in out.out
    assert (tmp_path / "map.png").stat().st_size > 10_000
    assert (tmp_path / "map.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads((tmp_path / "summary.json").read_text())["queries"] == 20


def test_the_numbers_are_those_of_the_network(files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, *files, "--links", "busiest:5", "--max-toll", "3", *QUICK, "--out", str(tmp_path), "--no-map")
    assert not (tmp_path / "map.png").exists()
    assert found["value"]["optimised"] <= min(found["value"]["no tolls"], found["value"]["uniform"])
    network = read_tntp(*files)
    tolls = np.zeros(network.links)
    for row in found["links"]:
        assert 0 <= row["toll"] <= 3
        tolls[row["link"]] = row["toll"]
        assert network.link_number((row["from"], row["to"])) == row["link"]
    after = network.assign(tolls)
    assert after.total_travel_time == pytest.approx(found["value"]["optimised"], rel=1e-9)
    welfare = {row["quantity"]: row for row in found["welfare"]}
    assert welfare["revenue"]["optimised"] == pytest.approx(after.revenue, rel=1e-6, abs=1e-6)
    assert welfare["total travel time"]["no tolls"] == pytest.approx(network.assign().total_travel_time, rel=1e-9)
    with (tmp_path / "tolls.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["link"]) for row in rows] == [row["link"] for row in found["links"]]
    np.testing.assert_allclose(
        [float(row["flow_after"]) for row in rows], [row["flow_after"] for row in found["links"]]
    )


def test_links_by_ends_number_and_word(files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = read_tntp(*files)
    ends = f"{network.node_ids[network.tail[7]]}-{network.node_ids[network.head[7]]}"
    found = data(capsys, *files, "--links", "3", ends, "3", *QUICK, "--out", str(tmp_path), "--no-map")
    assert [row["link"] for row in found["links"]] == [3, 7]
    every = data(capsys, *files, "--links", "all", *QUICK, "--out", str(tmp_path), "--no-map")
    assert len(every["links"]) == network.links


def test_classes_mixes_and_gmns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_gmns(generated_city(3, 4, zones=4, seed=3), tmp_path / "city")
    words = ["--gmns", str(tmp_path / "city"), "--objective", "revenue=1,travel_time=-0.1", "--values-of-time", "0.5"]
    words += ["2", "--shares", "0.7", "0.3", "--paying", "1", "--links", "busiest:3", *QUICK, "--out", str(tmp_path)]
    words += ["--no-map"]
    found = data(capsys, *words)
    assert found["sense"] == "max"
    welfare = {row["quantity"]: row["optimised"] for row in found["welfare"]}
    assert welfare["toll per trip (money), class 1"] == 0.0
    assert welfare["toll per trip (money), class 2"] >= 0.0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nosuch.tntp", "none.tntp"], "cannot be read"),
        (["nosuch.tntp"], "TRIPS is missing"),
        (["nosuch.tntp", "none.tntp", "--gmns", "x"], "both given"),
        (["--links", "1--2"], "expected FROM-TO, a number, busiest:N or all"),
        (["--links", "busiest:0"], "expected FROM-TO"),
        (["--links", "1-1"], "exactly one link"),
        (["--links", "9999"], "link number"),
        (["--objective", "profit"], "names out of"),
        (["--objective", "revenue=x"], "NAME=WEIGHT"),
        (["--max-toll", "0"], "--max-toll 0"),
        (["--shares", "1"], "--values-of-time"),
        (["--paying", "4"], "classes"),
        (["--queries", "3"], "queries = 3"),
        (["--gap", "0"], "gap"),
    ],
)
def test_mistakes_are_one_clear_message_and_code_2(words, expected: str, tmp_path: Path, capsys) -> None:
    assert main(["tolls", *words, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("pzos tolls: ")
    assert expected in told.err
    assert not (tmp_path / "out").exists()


def test_without_matplotlib_the_tables_still_come(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["tolls", *QUICK, "--out", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "optimised" in told.out
    assert "pzos[plot]" in told.err


def test_flows_can_be_capped_from_the_command_line(files: tuple[str, str], tmp_path: Path) -> None:
    words = [*files, "--links", "busiest:4", "--objective", "revenue", "--cap", "busiest:1=0.9", "--queries", "40"]
    command = [sys.executable, "-m", "pzos", "tolls", *words, "--no-map", "--json", "--out", str(tmp_path / "out")]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    kept = told["constraints"]
    assert kept["violation"] <= 1e-6
    assert len(kept["multipliers"]) == 1
    before, after = (told["links"][0][name] for name in ("flow_before", "flow_after"))
    assert after <= 0.9 * before * (1.0 + 1e-5)


@pytest.mark.parametrize("word", ["busiest:3", "10-16=much", "nowhere=3"])
def test_caps_that_cannot_be_read_are_named(word: str, files: tuple[str, str], tmp_path: Path) -> None:
    assert main(["tolls", *files, "--cap", word, "--out", str(tmp_path)]) != 0


@pytest.fixture
def bridge(tmp_path: Path) -> tuple[str, str]:
    """Write a city with one bridge that all trips must take, and two ways behind it."""
    net, trips = tmp_path / "bridge_net.tntp", tmp_path / "bridge_trips.tntp"
    rows = ["1 2 10 1 1 1 1", "2 3 1 1 0.001 1000 1", "2 4 10 1 0.5 0 1", "4 3 10 1 0.5 0 1"]
    tags = ["<NUMBER OF ZONES> 3", "<NUMBER OF NODES> 4", "<FIRST THRU NODE> 1", "<NUMBER OF LINKS> 4"]
    net.write_text("\n".join([*tags, "<END OF METADATA>", *(f"{row} 0 0 1 ;" for row in rows)]) + "\n")
    trips.write_text("<NUMBER OF ZONES> 3\n<TOTAL OD FLOW> 1.0\n<END OF METADATA>\nOrigin 1\n 3 : 1.0;\n")
    return str(net), str(trips)


def test_a_default_cap_that_binds_is_the_first_line(bridge, tmp_path: Path, capsys) -> None:
    words = ["tolls", *bridge, "--links", "1-2", "2-3", "--queries", "30", "--no-map", "--out", str(tmp_path)]
    assert main([*words, "--objective", "revenue"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[0].startswith("the default cap of ")
    assert "binds on 1 of 2 tolls" in told.splitlines()[0]
    assert "captive (as many travellers at every toll tried): 1-2" in told
    assert "% of the revenue is bounded by the cap alone" in told
    assert main([*words, "--objective", "revenue", "--max-toll", "3"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Network")  # this cap was chosen
    assert "at the highest toll allowed: 1-2" in told


def test_pointless_tolls_are_taken_off_and_named(bridge, tmp_path: Path, capsys) -> None:
    words = [*bridge, "--links", "1-2", "2-3", "--queries", "30", "--no-map", "--out", str(tmp_path)]
    found = data(capsys, *words)
    assert found["captive"] == found["taken_off"] == ["1-2"]
    assert found["links"][0]["toll"] == 0.0
    assert found["links"][1]["toll"] == pytest.approx(0.5, abs=1e-2)
    assert found["checks"]["queries"] >= 1
    assert found["checks"]["unchecked"] == 0
    assert found["queries"] <= 30
    assert not found["cap"]["binds"]


def test_links_are_written_for_a_geographic_information_system(files, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    words = [
        "--links",
        "busiest:3",
        *QUICK,
        "--no-map",
        "--out",
        str(out),
        "--geo",
        "geojson",
        "gpkg",
        "--crs",
        "25832",
    ]
    found = data(capsys, *words)
    lines = json.loads((out / "tolls.geojson").read_text())["features"]
    for row in found["links"]:
        assert lines[row["link"]]["properties"]["toll"] == pytest.approx(row["toll"])
        assert lines[row["link"]]["properties"]["flow_before"] == pytest.approx(row["flow_before"])
    assert (out / "tolls.gpkg").read_bytes().startswith(b"SQLite format 3")
    assert main(["tolls", *files, *words]) == 2  # these files have no coordinates
    assert "coordinates of every node" in capsys.readouterr().err


def test_a_trips_file_cut_in_half_and_other_columns(files, tmp_path: Path, capsys) -> None:
    trips = Path(files[1]).read_text().splitlines()
    Path(files[1]).write_text("\n".join(trips[: len(trips) // 2]) + "\n")
    assert main(["tolls", *files, "--out", str(tmp_path / "out")]) == 2
    assert "cut short" in capsys.readouterr().err
    assert main(["tolls", *files, "--columns", "from", "to", "capacity", "--out", str(tmp_path / "out")]) == 2
    assert "free-flow time is missing" in capsys.readouterr().err


def test_groups_cordons_and_areas_have_common_tolls(files, tmp_path: Path, capsys) -> None:
    network = read_tntp(*files)
    links = [f"{network.node_ids[network.tail[k]]}-{network.node_ids[network.head[k]]}" for k in (3, 7)]
    inside = ",".join(str(node) for node in network.node_ids[:4])
    words = ["--group", f"bridge={','.join(links)}", "--cordon", f"centre={inside}", "--area", f"old={inside}"]
    found = data(capsys, *files, *words, *QUICK, "--no-map", "--out", str(tmp_path))
    assert list(found["tolls"]) == ["bridge", "centre", "old"]
    tolls = {row["link"]: row["toll"] for row in found["links"]}
    assert tolls[3] == tolls[7] or {3, 7} & set(cordon_links(network, network.node_ids[:4]).tolist())
    by_class = ["--links", links[0], "--values-of-time", "0.5", "2", "--by-class"]
    found = data(capsys, *files, *by_class, *QUICK, "--no-map", "--out", str(tmp_path))
    assert list(found["tolls"]) == [f"{links[0]}, class 1", f"{links[0]}, class 2"]
    assert main(["tolls", *files, *words, *QUICK, "--no-map", "--out", str(tmp_path)]) == 0
    assert "\nbridge " in capsys.readouterr().out


def test_at_most_two_tolls(files, tmp_path: Path, capsys) -> None:
    words = ["--links", "busiest:6", "--most", "2", "--queries", "50", "--no-map", "--out", str(tmp_path)]
    found = data(capsys, *files, *words)
    assert sum(toll > 0 for toll in found["tolls"].values()) <= 2
    assert found["queries"] <= 50


def test_demand_can_be_elastic_and_the_report_has_the_surplus(files, tmp_path: Path, capsys) -> None:
    words = [*files, "--links", "busiest:3", "--objective", "surplus", "--elasticity", "0.4", "--out", str(tmp_path)]
    found = data(capsys, *words, "--queries", "30")
    welfare = {row["quantity"]: row for row in found["welfare"]}
    assert welfare["trips made"]["no tolls"] == pytest.approx(read_tntp(*files).demand.total, rel=1e-5)
    assert welfare["surplus (money), all"]["no tolls"] > 0
    assert found["value"]["optimised"] >= found["value"]["no tolls"]
    assert (tmp_path / "map.png").stat().st_size > 10_000


def test_times_of_day_and_losses(files, tmp_path: Path, capsys) -> None:
    words = [*files, "--links", "busiest:2", "--objective", "revenue", "--slices", "morning=1", "noon=0.5", "--out"]
    found = data(capsys, *words, str(tmp_path), *QUICK)
    assert len(found["tolls"]) == 4
    assert [name.split(", ")[1] for name in found["tolls"]] == ["morning", "noon", "morning", "noon"]
    assert main(["tolls", *words, str(tmp_path), *QUICK]) == 0
    later = len(str(read_tntp(*files).node_ids.max()))
    assert f"the nodes of 'noon' are numbered {10**later} higher" in capsys.readouterr().out
    network = read_tntp(*files)
    limit = 0.02 * network.assign().total_cost / network.demand.total
    words = [*files, "--links", "busiest:3", "--objective", "revenue", "--max-loss", str(limit), "--losses", "zone"]
    found = data(capsys, *words, "--queries", "40", "--no-map", "--out", str(tmp_path))
    assert found["constraints"]["violation"] <= 1e-6
    assert found["value"]["optimised"] > 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--group", "bridge"], "expected NAME=..."),
        (["--cordon", "centre=a,b"], "names of nodes"),
        (["--slices", "noon=x"], "expected NAME=..."),
        (["--elasticity", "-1"], "elasticity"),
        (["--elasticity", "0.3", "--losses", "zone"], "fixed demand"),
        (["--most", "0"], "most"),
    ],
)
def test_what_planners_ask_for_may_be_wrong(words, expected: str, files, tmp_path: Path, capsys) -> None:
    assert main(["tolls", *files, *words, "--out", str(tmp_path / "out")]) == 2
    assert expected in capsys.readouterr().err
