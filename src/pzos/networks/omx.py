"""Open Matrix files (OMX) of trips, in and out (extra ``omx``): matrices zone by zone, with a mapping to zone names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pzos.base.checks import FileFaults
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.types import Matrix
from pzos.networks.network import Network

_MAPPING = "zone"


@contextmanager
def _opened(path: str | Path, mode: str) -> Iterator[Any]:
    try:
        import openmatrix
    except ImportError as error:
        raise MissingExtra("openmatrix", "omx", "an OMX file") from error
    if mode == "r" and not Path(path).is_file():
        raise InvalidInput(f"{path}: cannot be read: expected an OMX file; check the path")
    try:
        file = openmatrix.open_file(str(path), mode)
    except (RuntimeError, OSError) as error:  # HDF5's own, many lines long
        if mode == "r":
            raise InvalidInput(f"{path}: cannot be read: expected a whole OMX file (HDF5); copy it again") from error
        raise InvalidInput(f"{path}: cannot be written: expected a place for a file; choose another") from error
    with file:
        yield file


def read_omx(path: str | Path, matrix: str | None = None) -> dict[str, list[float]]:
    """Return the trips of a file as a table with the columns origin, destination, trips.

    ``matrix`` names the matrix where there are several. Zones have the names of the file's only mapping, if it has one,
    else they are numbered from 1. The table is what :func:`pzos.networks.network_from_table` takes;
    :func:`pzos.networks.read_tntp` reads a file ``.omx`` in place of a trips file.
    """
    faults = FileFaults(path)
    with _opened(path, "r") as file:
        names, mappings = file.list_matrices(), file.list_mappings()
        chosen = matrix if matrix is not None else names[0] if len(names) == 1 else None
        if chosen not in names:
            found = "several matrices" if matrix is None and names else f"matrix {matrix!r}"
            known = f"one of {', '.join(names)}; name it with matrix= or --matrix" if names else "a matrix; it has none"
            faults.at(None, f"{found}: expected {known}")
            faults.raise_if_any()
        table: Matrix = np.array(file[chosen], dtype=np.float64)
        named = [int(name) for name in file.map_entries(mappings[0])] if len(mappings) == 1 else []
    labels = np.asarray(named or range(1, len(table) + 1))
    if table.shape != (labels.size, labels.size):
        faults.at(None, f"matrix {chosen!r} of shape {table.shape}: expected {labels.size} rows and columns")
    elif not np.all((table >= 0) & np.isfinite(table)):
        row, column = np.argwhere(~((table >= 0) & np.isfinite(table)))[0]
        faults.at(None, f"trips {table[row, column]:g} from {labels[row]} to {labels[column]}: expected a number >= 0")
    faults.raise_if_any()
    rows, columns = np.nonzero(table)
    cells = labels[rows], labels[columns], table[rows, columns]
    return dict(zip(("origin", "destination", "trips"), (cell.tolist() for cell in cells), strict=True))


def write_omx(network: Network, path: str | Path) -> None:
    """Write one matrix of trips per class of travellers, by its name, and the names of the zones as a mapping."""
    size = 1 + max(group.demand.highest for group in network.classes)
    with _opened(path, "w") as file:
        for group in network.classes:
            file[group.name] = group.demand.matrix(size)
        file.create_mapping(_MAPPING, network.node_ids[:size].tolist())
