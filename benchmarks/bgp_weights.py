"""BGP's weights beside W-ECMP's: the runs and the arithmetic behind two tables of docs/bgp.md.

python -m benchmarks.tables bgp_shares bgp_cct
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fattree.experiment.failures import Weights
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.routes.bgp import AnnouncedPaths
from fattree.routes.forwarding import forwarding
from fattree.routes.wecmp import Ints, LinkState, Paths, reach
from fattree.shape.topology import FatTree
from reproduction.report.schemes import MIB, PERMUTATION
from sim.runs.engine import run
from sim.runs.results import Result

# Drawn sets of links, of 2 to 4 each, and the sizes of fat-trees.
DRAWN = 200
SIZES = (4, 8, 16, 32)
SHARES_COLUMNS = (
    *("failed", "pairs with other ratios", "furthest share", "busiest uplink"),
    *("longest schedule, W-ECMP", "BGP"),
)
SEEDS = range(1, 11)
# Failures: the key of a row, and the settings of its runs.
CORE_LINK = {"failures__events": ({"link": "agg0_0-core0_0", "down_ns": 0},)}
CASES: dict[str, tuple[int, Mapping[str, Any]]] = {
    f"{k}, {name}": (k, settings)
    for k in (8, 16, 32)
    for name, settings in (
        ("a core link", CORE_LINK),
        ("1 % of links", {"failures__rate": 0.01}),
        ("4 % of links", {"failures__rate": 0.04}),
    )
}
CCT_COLUMNS = (
    *(
        "k, failed links",
        "seeds",
        "Ofan, W-ECMP",
        "Ofan, BGP",
        "Switch Pkt, W-ECMP",
        "Switch Pkt, BGP",
    ),
    *("longest queue of Ofan, W-ECMP", "BGP"),
)


def drawn(tree: FatTree) -> Iterator[frozenset[int]]:
    """Yield sets of links, from seed 1."""
    rng = np.random.default_rng(1)
    for size in rng.integers(2, 4, DRAWN, endpoint=True).tolist():
        yield frozenset(rng.choice(tree.links, size, replace=False).tolist())


def failures(k: int, kind: str) -> list[frozenset[int]]:
    """Return the failures of a row."""
    tree = FatTree(k)
    match kind:
        case "an edge's link":
            return [frozenset({link}) for link in range(0, tree.edge_links, tree.edge_uplinks)][:4]
        case "a core's link":
            return [frozenset({link}) for link in range(tree.edge_links, tree.edge_links + 4)]
        case _:
            return list(drawn(tree))


def shares(k: int, kind: str) -> Sequence[str]:
    """Return a row: how far BGP's shares of uplinks are from W-ECMP's, and schedules' lengths."""
    tree = FatTree(k)
    pairs = differing = 0
    furthest = busiest = 0.0
    longest: dict[Weights, int] = {"exact": 0, "bgp": 0}
    sets = failures(k, kind)
    for failed in sets:
        links = LinkState.without(tree, failed)
        exact, announced = Paths(tree, links), AnnouncedPaths(tree, links)
        for ours, theirs in _rows(tree, links, exact, announced):
            used = ours > 0
            shares_of_exact = np.where(used, _shares(ours), 1)
            ratio = np.where(used, _shares(theirs) / shares_of_exact, 1)
            differs = (np.abs(ratio - 1) > 1e-9).any(axis=-1)
            pairs += differs.size
            differing += int(differs.sum())
            furthest = max(furthest, float(np.abs(ratio - 1).max(initial=0)))
            busiest = max(busiest, float(ratio.max(initial=1)) - 1)

    # Schedules take longer to make: of some of the sets.
    for failed in sets[:10]:
        links = LinkState.without(tree, failed)
        for weights in longest:
            state = forwarding(tree, links, POLICIES["ofan"], seed=1, weights=weights)
            longest[weights] = max(longest[weights], int(np.diff(state.schedule_offset).max()))

    return (
        f"{kind}, k = {k}",
        f"{100 * differing / pairs:.2f} %",
        f"{100 * furthest:.1f} %",
        f"{100 * busiest:.2f} %",
        f"{longest['exact']:,}",
        f"{longest['bgp']:,}",
    )


def _rows(
    tree: FatTree, links: LinkState, exact: Paths, announced: AnnouncedPaths
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the weights of all edges towards pods, then towards edges behind failed links."""
    pods = np.arange(tree.pods)
    in_own_pod = pods == np.arange(tree.edges)[:, None] // tree.edges_per_pod
    to_pods = exact.to_pods()
    yield to_pods[~in_own_pod], announced.to_pods()[~in_own_pod]

    apart = announced.apart
    reached = reach(tree, links)[apart]
    for edge in range(tree.edges) if len(apart) else ():
        is_far = apart != edge
        ours = (to_pods[edge, apart // tree.edges_per_pod] * reached)[is_far]
        yield ours, announced.to_edges(edge, apart)[is_far]


def _shares(weights: Ints) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1)
    return shares


def cct(key: str) -> Sequence[str]:
    """Return a row: completion times over the bound, and Ofan's longest queue."""
    k, settings = CASES[key]
    # At k = 32 a run takes seconds.
    seeds = SEEDS if k < 32 else SEEDS[:5]
    runs = {
        (policy, weights): [_run(k, policy, weights, settings, seed) for seed in seeds]
        for policy in ("ofan", "switch_pkt")
        for weights in ("exact", "bgp")
    }
    times = [_spread([100 * result.increase for result in of_row]) for of_row in runs.values()]
    queues = [
        _spread([result.record.max_queue_packets for result in runs["ofan", weights]])
        for weights in ("exact", "bgp")
    ]
    return (key, str(len(seeds)), *(f"{time} %" for time in times), *queues)


def _run(k: int, policy: str, weights: str, settings: Mapping[str, Any], seed: int) -> Result:
    tables: dict[str, dict[str, object]] = {}
    for path, value in {**PERMUTATION, **settings, "fabric__k": k}.items():
        table, _, name = path.partition("__")
        tables.setdefault(table, {})[name] = value

    tables["collective"]["message_bytes"] = MIB
    tables["controller"] = {"weights": weights}
    return run(Scenario.model_validate({**tables, "policy": policy, "seed": seed}))


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"


SHARES_ROWS = {
    f"{kind}, k = {k}": partial(shares, k, kind)
    for kind in ("an edge's link", "a core's link", f"{DRAWN} drawn sets")
    for k in SIZES
}
CCT_ROWS = {key: partial(cct, key) for key in CASES}
