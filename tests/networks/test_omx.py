"""OMX files: what is written is read back, and what is wrong is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from pzos.base.errors import InvalidInput, MissingExtra
from pzos.cli.main import main
from pzos.networks import generated_city, network_from_table, read_omx, read_tntp, write_omx, write_tntp


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "openmatrix", None)
    with pytest.raises(MissingExtra, match=r"pzos\[omx\]"):
        read_omx(tmp_path / "trips.omx")


def test_trips_come_back_and_take_the_place_of_a_trips_file(tmp_path: Path, capsys) -> None:
    pytest.importorskip("openmatrix", reason="extra omx is not installed")
    city = generated_city(4, 4, zones=5, congestion=1.5, seed=1)
    net, trips, omx = (tmp_path / name for name in ("c_net.tntp", "c_trips.tntp", "c.omx"))
    write_tntp(city, net, trips)
    write_omx(city, omx)
    table = read_omx(omx)
    assert sum(table["trips"]) == pytest.approx(city.demand.total)
    links = {"from": city.node_ids[city.tail], "to": city.node_ids[city.head], "free_flow_time": city.latency.base}
    assert network_from_table(links, table).demand.total == pytest.approx(city.demand.total)
    np.testing.assert_array_equal(read_tntp(net, omx).demand.trips, read_tntp(net, trips).demand.trips)
    words = [str(net), str(omx), "--links", "busiest:2", "--queries", "20", "--no-map", "--out", str(tmp_path / "out")]
    assert main(["tolls", *words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["links"]) == 2


def test_several_matrices_and_faults(tmp_path: Path) -> None:
    openmatrix = pytest.importorskip("openmatrix", reason="extra omx is not installed")
    two = generated_city(3, 3, zones=4, seed=1).with_classes([1.0, 2.0], names=["cars", "vans"])
    write_omx(two, tmp_path / "two.omx")
    assert sum(read_omx(tmp_path / "two.omx", "vans")["trips"]) == pytest.approx(two.demand.total / 2)
    with pytest.raises(InvalidInput, match=r"two\.omx: several matrices: expected one of cars, vans; name it"):
        read_omx(tmp_path / "two.omx")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_omx(tmp_path / "none.omx")
    (tmp_path / "cut.omx").write_bytes((tmp_path / "two.omx").read_bytes()[:2000])
    with pytest.raises(InvalidInput, match=r"cut\.omx: cannot be read: expected a whole OMX file") as told:
        read_omx(tmp_path / "cut.omx")
    assert "\n" not in str(told.value)
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_omx(two, tmp_path / "nowhere" / "two.omx")
    with openmatrix.open_file(str(tmp_path / "empty.omx"), "w"):
        pass
    with pytest.raises(InvalidInput, match="expected a matrix; it has none"):
        read_omx(tmp_path / "empty.omx")
    with openmatrix.open_file(str(tmp_path / "bad.omx"), "w") as file:
        file["trips"] = np.array([[0.0, -1.0], [2.0, 0.0]])
    with pytest.raises(InvalidInput, match="trips -1 from 1 to 2"):
        read_omx(tmp_path / "bad.omx")
    with openmatrix.open_file(str(tmp_path / "wide.omx"), "w") as file:
        file["trips"] = np.ones((2, 3))
    with pytest.raises(InvalidInput, match="2 rows and columns"):
        read_omx(tmp_path / "wide.omx")
    net, trips = tmp_path / "n_net.tntp", tmp_path / "n_trips.tntp"
    write_tntp(generated_city(2, 2, zones=2, seed=1), net, trips)
    with pytest.raises(InvalidInput, match="zone 3: expected a number from 1 to 2"):
        read_tntp(net, tmp_path / "two.omx", matrix="cars")
