"""Exact derivatives of the equilibrium's link flows with respect to the tolls, from the paths that are used.

Small changes of the tolls move flow only between used paths, so that all used paths of a pair keep costing the same:
with D the exchanges of flow between used paths (as swaps, see :mod:`pzos.networks.equilibrium.newton`), S the slopes
of the travel times and t the change of the tolls in units of time,

    D' (S D y + t) = 0,   change of the flow = D y = - D (D' S D)^+ D' t.

Only products are computed, by conjugate gradients. At a kink, where a path is just about to be used or left, this is
the derivative to one side. For users who own the model, and as a prediction for simulators: no solver of the package
sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, frozen_array, require
from pzos.base.types import Matrix, Vector
from pzos.methods.predictions import ModelPrediction
from pzos.networks.equilibrium.newton import bundle, list_exchanges, path_codes
from pzos.networks.equilibrium.paths import new_marks, pairs_with_choice

if TYPE_CHECKING:
    from pzos.networks.assignment import Assignment
    from pzos.networks.tolls import TollFollower

_USED = 1e-7  # a path that costs more than the best by this share is being left: it moves nothing
_ACCURACY, _FLAT, _PRODUCTS = 1e-13, 1e-14, 20_000


@dataclass(frozen=True, eq=False)
class FlowDerivative:
    """The Jacobian of the link flows in the tolls, as products: ``forward`` and ``transpose``.

    One number per link means a toll that all classes pay, and the flow of all; a table has one row per class.
    """

    moves: tuple[Any, ...]
    slope: Vector
    worth: Matrix

    def forward(self, tolls: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return how the flows change with these changes of the tolls."""
        change, flat = self._table("forward", "tolls", tolls)
        flows = self._apply(-change / self.worth)
        return flows.sum(axis=0) if flat else flows

    def transpose(self, weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the derivative in the tolls of the sum of weights times flows."""
        table, flat = self._table("transpose", "weights", weights)
        slopes = self._apply(-table) / self.worth
        return slopes.sum(axis=0) if flat else slopes

    def _table(self, where: str, name: str, values: npt.ArrayLike) -> tuple[Matrix, bool]:
        faults, shape = Faults(f"FlowDerivative.{where}"), (self.worth.size, self.slope.size)
        array = frozen_array(faults, name, values)
        if array is None or not faults.check(
            array.shape in (shape, shape[1:]), name, array, f"{shape[1]} numbers (or {shape[0]} rows)", "one per link"
        ):
            raise faults.error()
        return np.array(np.broadcast_to(array, shape)), array.ndim == 1

    def _apply(self, table: Matrix) -> Matrix:
        """Return D (D' S D)^+ D' times a table with one row per class: the same both ways."""
        pull = np.concatenate([moves.T @ row for moves, row in zip(self.moves, table, strict=True)])
        amount = self._solve(pull)
        ends = np.cumsum([0, *(moves.shape[1] for moves in self.moves)])
        return np.array([moves @ amount[a:b] for moves, a, b in zip(self.moves, ends[:-1], ends[1:], strict=True)])

    def _solve(self, pull: Vector) -> Vector:
        """Solve D' S D y = pull by preconditioned conjugate gradients; of many solutions one of least size.

        Not by SciPy's: it divides by the curvature of every direction, and its callback, which is shown the iterate
        alone, cannot stop at a flat one.
        """
        from scipy.sparse import hstack

        together = hstack(self.moves, format="csr")
        across = together.T.tocsr()
        diagonal = abs(across) @ self.slope
        weight = np.divide(1.0, diagonal, out=np.zeros(pull.size), where=diagonal > 0.0)
        amount, residual = np.zeros(pull.size), np.where(diagonal > 0.0, pull, 0.0)
        search = residual * weight
        size = float(np.einsum("i,i->", residual, search))
        goal = _ACCURACY**2 * size
        for _ in range(_PRODUCTS):
            if size <= goal:
                break
            product = across @ (self.slope * (together @ search))
            curvature = float(np.einsum("i,i->", search, product))
            if curvature <= _FLAT * float(np.einsum("i,i,i->", search, search, diagonal)):
                break  # what is left moves flow between classes or paths that no link can tell apart
            step = size / curvature
            amount += step * search
            residual -= step * product
            before, size = size, float(np.einsum("i,i,i->", residual, residual, weight))
            search = residual * weight + size / before * search
        return amount


def flow_derivative(answer: Assignment) -> FlowDerivative:
    """Return the derivative of an equilibrium's flows; see :meth:`pzos.networks.Assignment.jacobian`."""
    from scipy.sparse import csc_array

    network, outcome = answer.network, answer._outcome
    ready, paths = network.prepared, answer.path_sets
    pairs, marks = pairs_with_choice(paths), new_marks(network.links)
    prices, codes = np.full(paths.flow.size, np.inf), np.zeros(paths.flow.size, np.int64)
    with np.errstate(over="ignore"):
        path_codes(pairs, paths, outcome.state, prices, codes)
    owner = np.repeat(np.arange(paths.first.size - 1), np.diff(paths.first))
    count = owner.size
    least = np.minimum.reduceat(prices[:count], paths.first[:-1])[owner]
    used = paths.flow[:count] * (prices[:count] <= least + _USED * np.abs(least))
    kept = paths._replace(flow=used)
    same = np.zeros(paths.flow.size)  # at equal prices no empty path is exchanged
    with np.errstate(over="ignore"):
        exchanges, key, differ = list_exchanges(pairs, ready.trips.pair_class, kept, same, codes, marks)
        swaps = bundle(exchanges, key, differ, kept, marks)
    kind = np.zeros(swaps.fixed.size, np.int64)
    kind[exchanges.swap] = ready.trips.pair_class[owner[exchanges.path]]
    end = int(swaps.start[-1])
    sign = np.where(np.arange(end) < np.repeat(swaps.middle, np.diff(swaps.start)), 1.0, -1.0)
    links = ready.order[swaps.own[:end].astype(np.int64)]
    moves = csc_array((sign, links, swaps.start), shape=(network.links, kind.size))
    by_class = tuple(moves[:, np.flatnonzero(kind == each)] for each in range(len(network.classes)))
    return FlowDerivative(by_class, network.latency.slope(answer.flow), network.worth)


def model_prediction(travellers: TollFollower) -> ModelPrediction:
    """Return the equilibrium model's derivatives as a prediction for a follower that it describes imperfectly."""
    require(travellers.losses is None, "model_prediction", "travellers.losses", travellers.losses, "None",
            "the derivatives are those of flows; leave the losses out of the response")  # fmt: skip

    def product(x: Vector, weights: Vector) -> Vector:
        network, tariff = travellers.network, travellers.tariff
        table = np.array(np.broadcast_to(weights[: network.links], (len(network.classes), network.links)))
        if not tariff.alike:  # how many pay each toll follows behind the flow
            table += tariff.tolls(weights[network.links :])
        return tariff.payers(travellers.assignment(x).jacobian().transpose(table))

    return ModelPrediction(product)
