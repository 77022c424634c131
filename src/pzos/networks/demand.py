"""Who travels: trips between zones, and classes of travellers with their own value of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pzos.base.checks import (
    Faults,
    check_fields,
    checked,
    frozen_array,
    frozen_indices,
    instance_of,
    positive,
    require,
)
from pzos.base.types import Matrix, Vector

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Demand:
    """Trips from node ``origin`` to node ``destination`` (counted from 0); only positive ones between two nodes."""

    origin: Indices
    destination: Indices
    trips: Vector

    @staticmethod
    def from_matrix(matrix: npt.ArrayLike) -> Demand:
        """Return the demand of a square table: row i, column j are the trips from node i to node j."""
        faults = Faults("Demand.from_matrix")
        table = frozen_array(faults, "matrix", matrix)
        if table is None:
            raise faults.error()
        square = table.ndim == 2 and table.shape[0] == table.shape[1]
        require(square, "Demand.from_matrix", "matrix", table, "a square table", "one row and one column per zone")
        rows, columns = np.nonzero(table)
        return Demand.from_list(rows, columns, table[rows, columns])

    @staticmethod
    def from_list(origin: npt.ArrayLike, destination: npt.ArrayLike, trips: npt.ArrayLike) -> Demand:
        """Return the demand of a list of trips; repeated pairs add up, pairs from a node to itself are dropped."""
        faults = Faults("Demand")
        start, end = frozen_indices(faults, "origin", origin), frozen_indices(faults, "destination", destination)
        amounts = frozen_array(faults, "trips", trips)
        if start is None or end is None or amounts is None:
            raise faults.error()
        amount = amounts.ravel()
        if faults.check(start.size == end.size == amount.size, "trips", amount, f"{start.size} numbers",
                        "give origin, destination and trips of equal length"):  # fmt: skip
            good = np.isfinite(amount) & (amount >= 0)
            if not good.all():
                bad = int(np.argmin(good))
                faults.check(False, f"trips[{bad}]", float(amount[bad]), "a finite number >= 0", "check the table")
            faults.check(bool((start >= 0).all() and (end >= 0).all()), "origin", start, "node numbers >= 0",
                         "count nodes from 0")  # fmt: skip
        faults.raise_if_any()
        travels = (start != end) & (amount > 0)
        start, end, amount = start[travels], end[travels], amount[travels]
        span = int(max(start.max(initial=0), end.max(initial=0))) + 1
        pairs, where = np.unique(start * span + end, return_inverse=True)
        summed = np.bincount(where, weights=amount, minlength=pairs.size).astype(np.float64)
        return Demand(pairs // span, pairs % span, summed)

    @property
    def highest(self) -> int:
        """Return the largest node number that a trip starts or ends at (0 without trips)."""
        return int(max(self.origin.max(initial=0), self.destination.max(initial=0)))

    @property
    def total(self) -> float:
        """Return the number of trips between different nodes."""
        return float(self.trips.sum())

    def scaled(self, factor: float) -> Demand:
        """Return the same demand times ``factor``."""
        positive("try 0.5").require("Demand.scaled", "factor", factor)
        return Demand(self.origin, self.destination, self.trips * float(factor))

    def matrix(self, size: int) -> Matrix:
        """Return the trips as a square table of ``size`` rows."""
        table = np.zeros((size, size))
        table[self.origin, self.destination] = self.trips
        return table


@dataclass(frozen=True, eq=False)
class UserClass:
    """Travellers who weigh a toll alike: a toll of p costs them p / ``value_of_time`` units of travel time."""

    demand: Demand = checked(instance_of(Demand, "a Demand", "use Demand.from_matrix"))
    value_of_time: float = checked(
        positive("money per unit of travel time; 1.0 if tolls are in units of time"), default=1.0
    )
    name: str = "all"

    def __post_init__(self) -> None:
        check_fields(self)
