"""``pzos tolls NET TRIPS``: choose tolls for a city; ends with a table, the numbers a planner needs, and a map.

NET and TRIPS are TNTP files; ``--gmns FOLDER`` reads GMNS tables; without either a generated city is used. Links are
given as FROM-TO (node names), as numbers counted from 0, as ``busiest:N`` (where most time is spent) or ``all``.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pzos.base.checks import counted
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.cli.printing import add_json, as_json, emit
from pzos.networks.assignment import Assignment
from pzos.networks.city import generated_city
from pzos.networks.demand import Indices
from pzos.networks.geo import require_places, write_geojson, write_geopackage
from pzos.networks.gmns import read_gmns
from pzos.networks.network import Network
from pzos.networks.objectives import SENSES, TollReport, toll_report
from pzos.networks.osm import read_osm, read_trips
from pzos.networks.scenarios import with_elastic_demand, with_time_slices
from pzos.networks.search import TollSearch, optimise_tolls
from pzos.networks.tariffs import Tariff, area_links, cordon_links, link_names, tariff
from pzos.networks.tntp import read_tntp
from pzos.networks.tolls import TollFollower, flow_caps, loss_caps, total_cap, usual_cap
from pzos.problem.outcomes import Outcomes
from pzos.study.standing import Standing

_LINK_COLUMNS = ("link", "from", "to", "toll", "flow_before", "flow_after", "time_before", "time_after")
_NAMED = 12
_GROUPS = {
    "group": "one common toll for links: NAME=LINK,LINK,...",
    "cordon": "one toll for entering the area of some nodes: NAME=NODE,NODE,...",
    "area": "one common toll for the links between some nodes: NAME=NODE,NODE,...",
}
_GEO = {"geojson": write_geojson, "gpkg": write_geopackage}
_EXAMPLE = "examples: --objective revenue, --objective revenue=1,travel_time=-0.2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos tolls``."""
    add = parser.add_argument
    add("net", nargs="?", type=Path, metavar="NET", help="TNTP network file (default: a generated city)")
    add("trips", nargs="?", type=Path, metavar="TRIPS", help="TNTP trips file, or an OMX file")
    add("--matrix", metavar="NAME", help="matrix of an OMX file that has several")
    add("--node", type=Path, help="TNTP node file (default: the one beside NET, if there is one)")
    add("--gmns", type=Path, metavar="FOLDER", help="node.csv, link.csv, demand.csv instead of TNTP")
    add("--osm", type=Path, metavar="FILE", help="OpenStreetMap extract instead of TNTP, with --od")
    add("--od", type=Path, metavar="CSV", help="trips for --osm: origin, destination (nodes of the map), trips")
    add("--columns", nargs="+", metavar="NAME", help="columns of NET in its order, if not the usual ones: "
        "init_node term_node capacity free_flow_time (length, b, power, toll, link_type); others: skipped")  # fmt: skip
    add("--toll-factor", type=float, help="weight of the file's tolls in the cost")
    add("--distance-factor", type=float, help="weight of the length in the cost")
    add("--links", nargs="+", metavar="LINK", help="one toll for each: FROM-TO, numbers, busiest:N or all (busiest:20)")
    for word, what in _GROUPS.items():
        add(f"--{word}", nargs="+", default=[], metavar="NAME=...", help=what)
    add("--by-class", action="store_true", help="each class of travellers has tolls of its own")
    add("--most", type=int, metavar="K", help="keep at most K tolls")
    add("--objective", default="travel_time", help=f"{', '.join(SENSES)}, or a mix; {_EXAMPLE}")
    add("--max-toll", type=float, help="highest toll per link (default: see pzos.networks.usual_cap)")
    add("--min-toll", type=float, default=0.0, help="lowest toll per link; below 0 allows subsidies (0)")
    add("--values-of-time", nargs="+", type=float, metavar="V", help="one class of travellers per value")
    add("--shares", nargs="+", type=float, metavar="S", help="their shares of the trips (equal)")
    add("--paying", nargs="+", type=int, metavar="K", help="classes that pay, counted from 0 (all)")
    add(
        "--elasticity", type=float, metavar="E", help="trips become fewer by E %% where they become 1 %% dearer (fixed)"
    )
    add("--slices", nargs="+", metavar="NAME=SHARE", help="times of day with their share of the trips; tolls for each")
    add("--max-loss", type=float, metavar="MONEY", help="most that the mean trip of any class (or zone) may lose")
    add("--losses", choices=("class", "zone"), help="whose losses --max-loss and largest_loss mean (class)")
    add("--cap", nargs="+", default=[], metavar="WHAT=MOST",
        help="most flow on a link (FROM-TO=MOST; busiest:N=SHARE of what it has), or most of an objective")  # fmt: skip
    add("--queries", type=int, default=200, help="equilibria to compute in the search (200)")
    add("--gap", type=float, default=1e-10, help="relative gap of every equilibrium (1e-10)")
    add("--threads", type=int, default=1, help="threads of every equilibrium, for large networks (1)")
    add("--seed", type=int, default=0, help="seed of the search, and of the generated city (0)")
    add("--show", type=int, default=20, metavar="N", help="rows of the table of links (20)")
    add("--out", type=Path, default=Path("tolls-output"), metavar="DIR", help="folder for tolls.csv and the maps")
    add("--geo", nargs="+", default=[], choices=sorted(_GEO), metavar="KIND", help="also write links and nodes as "
        f"{' or '.join(sorted(_GEO))}, flows before and after")  # fmt: skip
    add("--crs", type=int, metavar="EPSG", help="reference system of the coordinates (4326: degrees) for --geo")
    add("--no-map", action="store_true", help="draw no map")
    add_json(parser)


class _Choice(NamedTuple):
    """The network with its classes, the untolled equilibrium, and the tolls that may be chosen."""

    network: Network
    free: Assignment
    tariff: Tariff
    lowest: float
    highest: float

    @property
    def links(self) -> Indices:
        """Return the tolled links."""
        return self.tariff.tolled

    def names(self, tolls: Iterable[int]) -> list[str]:
        """Return the names of some tolls, those of links as FROM-TO."""
        return [self.tariff.names[toll].replace(" → ", "-") for toll in tolls]


def run(args: argparse.Namespace) -> int:
    """Search tolls, print the tables, write CSV and map; exit code 130 if it was interrupted."""
    choice = _choice(args)
    objective = _objective(args.objective)
    problem = choice.network.toll_problem(
        choice.tariff, objective, losses=args.losses or (None if args.max_loss is None else "class"),
        lower=choice.lowest, upper=choice.highest, gap=args.gap, x0=0.0, outcomes=_constraints(args, choice),
        threads=args.threads,
    )  # fmt: skip
    found = optimise_tolls(problem, choice.highest, queries=args.queries, most=args.most, seed=args.seed)
    travellers = TollFollower(choice.network, choice.tariff, args.gap, threads=args.threads)
    states = [travellers.assignment(x) for x in (np.full(found.x.size, found.uniform.toll), found.x)]
    reports = [toll_report(choice.free, state, choice.links) for state in states]
    args.out.mkdir(parents=True, exist_ok=True)
    written = [_write_tolls(_link_rows(choice, states[1]), args.out / "tolls.csv")]
    for kind in args.geo:
        written.append(args.out / f"tolls.{kind}")
        _GEO[kind](choice.free, states[1], written[-1], crs=args.crs)
    written += _map(args, choice, states[1])
    data = _data(args, choice, found, reports, written)
    (args.out / "summary.json").write_text(as_json(data) + "\n", encoding="utf-8")
    written.append(args.out / "summary.json")
    emit(args, data, _text(args, choice, found, reports, written))
    return 130 if found.result.stop.name == "INTERRUPTED" else 0


# ---- what was asked -------------------------------------------------------------------------------------------


def _choice(args: argparse.Namespace) -> _Choice:
    network = _network(args)
    if args.values_of_time is not None:
        network = network.with_classes(args.values_of_time, args.shares)
    elif args.shares is not None:
        raise InvalidInput("tolls: --shares without --values-of-time: expected one value of time per share; add them")
    if args.geo:
        require_places("tolls --geo", network, args.crs)  # before the search, not after it
    free = network.assign(gap=args.gap, threads=args.threads)
    groups = _groups(args, network, free)
    links = list(dict.fromkeys(int(link) for group in groups.values() for link in group))
    highest = usual_cap(network, links, classes=args.paying, free=free) if args.max_toll is None else args.max_toll
    if not (np.isfinite(highest) and highest > max(args.min_toll, 0.0)):
        raise InvalidInput(f"tolls: --max-toll {highest:g}: expected a finite number above 0 and --min-toll; raise it")
    if args.elasticity is not None and args.losses == "zone":
        raise InvalidInput("tolls: --losses zone with --elasticity: expected fixed demand; drop one of them")
    if args.slices is not None:
        shares, roads = _pairs("slices", args.slices, float, "morning=1 noon=0.6"), network.links
        network = with_time_slices(network, shares)
        parts = product(groups.items(), enumerate(shares))
        groups = {f"{name}, {time}": links + slot * roads for (name, links), (slot, time) in parts}
    if args.elasticity is not None:
        network = with_elastic_demand(network, args.elasticity, gap=args.gap)
    if args.slices is not None or args.elasticity is not None:
        free = network.assign(gap=args.gap, threads=args.threads)
    plan = tariff(network, groups, classes=args.paying, by_class=args.by_class)
    return _Choice(network, free, plan, args.min_toll, highest)


def _groups(args: argparse.Namespace, network: Network, free: Assignment) -> dict[str, Indices]:
    """Return the links of every toll by name: single links, groups, cordons and areas."""
    asked = any(getattr(args, word) for word in _GROUPS)
    words = args.links if args.links is not None else [] if asked else ["busiest:20"]
    names = link_names(network)
    found = {names[link]: np.array([link]) for link in _links(words, network, free).tolist()}
    for name, text in _pairs("group", args.group, str, "bridge=1-2,2-1").items():
        found[name] = _links(text.split(","), network, free)
    for word, links_of in (("cordon", cordon_links), ("area", area_links)):
        for name, text in _pairs(word, getattr(args, word), str, "centre=5,6,9").items():
            nodes = [int(node) if node.isdigit() else node for node in text.split(",")]
            found[name] = links_of(network, nodes)
    return found


def _pairs(option: str, words: Iterable[str], kind: Callable[[str], Any], example: str) -> dict[str, Any]:
    """Return the pairs NAME=VALUE of an option."""
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = kind(value)
        except ValueError:
            value = ""
        if not (name and value):
            raise InvalidInput(f"tolls: --{option} {word!r}: expected NAME=...; try {example}")
    return found


def _network(args: argparse.Namespace) -> Network:
    if sum(given is not None for given in (args.net, args.gmns, args.osm)) > 1:
        raise InvalidInput("tolls: of NET, --gmns and --osm two were both given: expected one network; drop one")
    if args.gmns is not None:
        return read_gmns(args.gmns, toll_factor=args.toll_factor or 0.0, distance_factor=args.distance_factor or 0.0)
    if args.osm is not None:
        if args.od is None:
            raise InvalidInput("tolls: --od is missing: expected a table of trips between nodes of the map; add it")
        return read_osm(args.osm, read_trips(args.od))
    if args.net is None:
        return generated_city(congestion=2.0, seed=args.seed)
    if args.trips is None:
        raise InvalidInput(f"tolls: TRIPS is missing: expected the trips file that belongs to {args.net}; add it")
    return read_tntp(
        args.net, args.trips, args.node, toll_factor=args.toll_factor, distance_factor=args.distance_factor,
        columns=args.columns, matrix=args.matrix,
    )  # fmt: skip


def _links(words: list[str], network: Network, free: Assignment) -> Indices:
    """Return the numbers of the links that the words name, each once, in the order given."""
    numbers: list[int] = []
    for word in words:
        if word == "all":
            numbers += range(network.links)
        elif word.startswith("busiest:") and word[8:].isdigit() and int(word[8:]) > 0:
            numbers += np.argsort(-free.flow * free.time * network.roads, kind="stable")[: int(word[8:])].tolist()
        elif word.isdigit():
            numbers.append(network.link_number(int(word)))
        elif word.count("-") == 1 and all(part.isdigit() for part in word.split("-")):
            ends = word.split("-")
            numbers.append(network.link_number((int(ends[0]), int(ends[1]))))
        else:
            raise InvalidInput(f"tolls: --links {word!r}: expected FROM-TO, a number, busiest:N or all; try busiest:20")
    return np.array(list(dict.fromkeys(numbers)), dtype=np.int64)


def _constraints(args: argparse.Namespace, choice: _Choice) -> list[Outcomes] | None:
    """Return the constraints that were asked for, None if there are none."""
    found = []
    if args.max_loss is not None:
        found.append(loss_caps(choice.network, choice.tariff, args.losses or "class", args.max_loss, args.gap))
    for word in args.cap:
        what, _, most = word.partition("=")
        try:
            limit = float(most)
        except ValueError as error:
            raise InvalidInput(f"tolls: --cap {word!r}: expected WHAT=MOST; try 10-16=9000 or busiest:5=0.9") from error
        if what in SENSES:
            found.append(total_cap(choice.network, choice.tariff, what, limit))
            continue
        links = _links([what], choice.network, choice.free)
        flows = limit * choice.free.flow[links] if what.startswith("busiest:") else limit
        found.append(flow_caps(choice.network, links, flows))
    return found or None


def _objective(text: str) -> str | dict[str, float]:
    if "=" not in text:
        return text
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, weight = part.partition("=")
        try:
            weights[name.strip()] = float(weight)
        except ValueError as error:
            raise InvalidInput(f"tolls: --objective {part!r}: expected NAME=WEIGHT; {_EXAMPLE}") from error
    return weights


# ---- what is told ---------------------------------------------------------------------------------------------


def _data(args: argparse.Namespace, choice: _Choice, found: TollSearch, reports: list[TollReport],
          written: list[Path]) -> dict[str, Any]:  # fmt: skip
    network, state = choice.network, reports[1].after
    return {
        "network": network.name,
        "objective": args.objective,
        "sense": found.result.sense,
        "value": {"no tolls": found.untolled, "uniform": found.uniform.value, "optimised": found.value},
        "uniform_toll": found.uniform.toll,
        "start": found.start.what,
        "queries": found.queries,
        "seconds": found.seconds,
        "stop": found.result.stop.name.lower(),
        **({} if found.standing is None else {"constraints": _kept(found.standing)}),
        "cap": {"highest": choice.highest, "default": args.max_toll is None, "binds": choice.names(found.capped)},
        "captive": choice.names(found.captive),
        "bounded_by_the_cap_alone": _bounded(args, choice, found, state),
        "taken_off": choice.names(found.taken_off),
        "checks": {"queries": found.checks, "unchecked": found.unchecked},
        "priced_out": choice.names(found.empty),
        "not_determined": {"flows": _open(found), "objective": found.open_value},
        "gap": state.gap,
        "tolls": dict(zip(choice.names(range(found.x.size)), map(float, found.x), strict=True)),
        "links": [dict(zip(_LINK_COLUMNS[:-2], row[:-2], strict=True)) for row in _link_rows(choice, state)],
        "welfare": [
            {"quantity": name, "no tolls": before, "uniform": uniform[2], "optimised": after}
            for uniform, (name, before, after) in zip(reports[0].rows(), reports[1].rows(), strict=True)
        ],
        "files": [str(path) for path in written],
    }


def _text(args: argparse.Namespace, choice: _Choice, found: TollSearch, reports: list[TollReport],
          written: list[Path]) -> str:  # fmt: skip
    network = choice.network
    goal = "lowered" if found.result.sense == "min" else "raised"
    lines = [
        *_binding_default(args, choice, found),
        repr(network),
        f"tolls from {choice.lowest:g} to {choice.highest:g} on {choice.links.size} links, so that {args.objective} is "
        f"{goal}; every equilibrium to a relative gap of {args.gap:g}",
        "",
        f"{'':<42}{'no tolls':>16}{f'uniform {found.uniform.toll:.3g}':>16}{'optimised':>16}",
        f"{'objective: ' + args.objective:<42}{_cells(found.untolled, found.uniform.value, found.value)}",
    ]
    for uniform, (name, before, after) in zip(reports[0].rows(), reports[1].rows(), strict=True):
        lines.append(f"{name:<42}{_cells(before, uniform[2], after)}")
    if found.standing is not None:
        lines += ["", *(f"{name}: {text}" for name, text in found.standing.rows())]
    if choice.links.size != found.x.size:  # common tolls, or several on a link
        lines += ["", *(f"{name:<42}{toll:>16.3f}" for name, toll in zip(choice.names(range(found.x.size)), found.x,
                                                                         strict=True))]  # fmt: skip
    rows = reports[1].link_rows(args.show)
    lines += ["", f"{'link':<20}{'toll':>10}{'flow before':>16}{'flow after':>16}"]
    lines += [f"{name:<20}{toll:>10.3f}{_cells(before, after)}" for name, toll, before, after in rows]
    if choice.links.size > len(rows):
        lines.append(f"and {choice.links.size - len(rows)} more links in tolls.csv")
    if args.slices is not None:
        step = network.node_ids[1] - network.node_ids[0]  # node by node, the slices beside each other
        later = [word.partition("=")[0] for word in args.slices][1:]
        lines += [f"the nodes of {name!r} are numbered {k * step} higher" for k, name in enumerate(later, 1)]
    lines += [
        *_findings(args, choice, found, reports[1].after),
        "",
        f"{found.queries} queries, {found.seconds:.1f} s; {found.result.stop.value}; "
        f"the search began at {found.start.what}",
        "written: " + ", ".join(str(path) for path in written),
    ]
    return "\n".join(lines)


def _binding_default(args: argparse.Namespace, choice: _Choice, found: TollSearch) -> list[str]:
    """Return the first line of the result where the default cap binds: nobody chose it."""
    if args.max_toll is not None or not found.capped:
        return []
    return [f"the default cap of {choice.highest:g} binds on {len(found.capped)} of {found.x.size} tolls: "
            "the tolls are only the best up to it; choose the highest toll yourself with --max-toll"]  # fmt: skip


def _findings(args: argparse.Namespace, choice: _Choice, found: TollSearch, state: Assignment) -> list[str]:
    """Return what a planner must know before signing: captive links, pointless tolls, links priced out."""

    def said(tolls: Iterable[int]) -> str:
        names = choice.names(tolls)
        return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")

    bounded = _bounded(args, choice, found, state)
    lines = []
    if found.capped and args.max_toll is not None:
        lines.append(f"at the highest toll allowed: {said(found.capped)}")
    if found.captive:
        lines.append(f"captive (as many travellers at every toll tried): {said(found.captive)}")
    if bounded["links"]:
        lines.append(f"{100 * bounded['share']:.0f} % of the revenue is bounded by the cap alone: "
                     f"{len(bounded['links'])} captive links are at it, and a higher cap would take more")  # fmt: skip
    if found.empty:
        lines.append(f"priced out of traffic (lower tolls were tried and are no better): {said(found.empty)}")
    if found.taken_off:
        lines.append(f"taken off, because they changed nothing: the tolls on {said(found.taken_off)}")
    if found.checks:
        left = f"; {counted(found.unchecked, 'toll')} not checked for want of queries" if found.unchecked else ""
        lines.append(f"{counted(found.checks, 'query')} spent on finding tolls that change nothing{left}")
    lines += _open(found)
    if found.open_value:
        lines.append("the objective depends on flows that are not determined: travellers who do not care decide it")
    return ["", *lines] if lines else []


def _open(found: TollSearch) -> list[str]:
    return [] if found.open_flows is None else found.open_flows.sentences()


def _bounded(args: argparse.Namespace, choice: _Choice, found: TollSearch, state: Assignment) -> dict[str, Any]:
    """Return the captive links at the cap and their share of the revenue, where revenue is wanted."""
    both = sorted(set(found.captive) & set(found.capped)) if "revenue" in args.objective else []
    taken = found.x * choice.tariff.payers(state.class_flow)
    share = float(taken[both].sum() / taken.sum()) if both else 0.0
    return {"links": choice.names(both), "share": share}


def _kept(standing: Standing) -> dict[str, Any]:
    """Return how the search ended with the constraints, for a program."""
    return {"violation": standing.violation, "active": list(standing.active), "multipliers": standing.multipliers}


def _cells(*values: float) -> str:
    return "".join(f"{value:>16,.1f}" if abs(value) >= 100 else f"{value:>16.4g}" for value in values)


def _link_rows(choice: _Choice, state: Assignment) -> Iterator[tuple[float, ...]]:
    """Yield what each tolled link is told with, in the order of the columns."""
    network, free = choice.network, choice.free
    for link, toll in zip(choice.links.tolist(), state.largest_toll[choice.links], strict=True):
        ends = int(network.node_ids[network.tail[link]]), int(network.node_ids[network.head[link]])
        numbers = toll, free.flow[link], state.flow[link], free.time[link], state.time[link]
        yield link, *ends, *(float(number) for number in numbers)


def _write_tolls(rows: Iterable[tuple[float, ...]], path: Path) -> Path:
    """Write one row per tolled link, every float with all its digits."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(_LINK_COLUMNS)
        writer.writerows(rows)
    return path


def _map(args: argparse.Namespace, choice: _Choice, state: Assignment) -> list[Path]:
    if args.no_map or len(args.slices or ()) > 1:  # times of day would lie on top of each other
        return []
    from pzos.networks.maps import draw_map
    from pzos.networks.street_map import write_map

    page, picture = args.out / "map.html", args.out / "map.png"
    write_map(choice.free, state, page, title=choice.network.name)
    try:
        draw_map(choice.free, state, picture, title=choice.network.name)
    except MissingExtra as error:  # the tables are worth having without it
        sys.stderr.write(f"pzos tolls: no map.png: {error}\n")
        return [page]
    return [page, picture]
