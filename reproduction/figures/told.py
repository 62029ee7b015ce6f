"""Which switches must hear of a link's failure (section 5.2)."""

from functools import cache
from typing import Any, NamedTuple

import polars as pl

from fattree.policies import POLICIES
from fattree.routes.forwarding import Forwarding, forwarding
from fattree.routes.groups import NONE
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree, Tier
from reproduction.report import style
from reproduction.report.figure import Data, Figure

SIZES = (4, 8, 16)
DRAWN = 4
# With weights, and with reachability alone.
POLICIES_SHOWN = ("ofan", "ofan_fib")
KINDS = ("edge-aggregation", "aggregation-core")
TIERS = {Tier.EDGE: "edges", Tier.AGG: "aggregations", Tier.CORE: "cores"}
ALL, SOME, NO = "updates all other pods", "updates some destinations", "updates nothing"
# The paper's pods count from 1, ours from 0.
POD = 0


class Changed(NamedTuple):
    """Number of a switch's destinations (edges, pods) that have another schedule.

    `beyond` is the number of destinations in other pods than the switch's own.
    """

    destinations: int
    beyond: int


def failing(tree: FatTree, kind: str) -> int:
    """Return the link of a kind that fails: the first of the first pod."""
    return 0 if kind == KINDS[0] else tree.edge_links


@cache
def changed(k: int, kind: str, policy: str) -> dict[int, Changed]:
    """Return the changes at the switches that must update something when a link fails.

    The two ends of the link lose a port, whatever else changes there.
    """
    tree = FatTree(k)
    link = failing(tree, kind)
    before, after = (
        forwarding(tree, LinkState.without(tree, failed), POLICIES[policy], seed=1)
        for failed in (frozenset[int](), frozenset({link}))
    )
    changes = {}
    ends = {end.switch for end in tree.link_ends(link)}
    for switch in range(tree.first_core):
        destinations = range(tree.edges if switch < tree.edges else tree.pods)
        differ = [
            schedule_of(before, switch, destination) != schedule_of(after, switch, destination)
            for destination in destinations
        ]
        if any(differ) or switch in ends:
            in_own_pod = tree.edges_per_pod if switch < tree.edges else 1
            changes[switch] = Changed(sum(differ), len(destinations) - in_own_pod)

    # A core loses its only way to a pod.
    cores = {end: Changed(1, tree.pods) for end in ends if end >= tree.first_core}
    return changes | cores


def schedule_of(table: Forwarding, switch: int, destination: int) -> bytes | None:
    """Return a switch's schedule for an edge (at edges) or a pod (at aggs), None without a path."""
    edges = table.tree.edges
    groups = table.edge_group[switch] if switch < edges else table.agg_group[switch - edges]
    if groups[destination] == NONE:
        return None

    schedule = table.group_schedule[table.groups(switch)[int(groups[destination])]]
    return table.schedule(switch, int(schedule)).tobytes()


def counted(k: int, kind: str, policy: str) -> dict[str, str]:
    """Return how many switches of each tier must hear of a failure, in its pod and elsewhere."""
    tree = FatTree(k)
    changes = changed(k, kind, policy)
    row = {}
    for tier, name in TIERS.items():
        all_of = [switch for switch in range(tree.switches) if tree.tier(switch) is tier]
        told = [switch for switch in all_of if switch in changes]
        if tier is Tier.CORE:
            row[name] = f"{len(told)} of {len(all_of)}"
            continue

        near = [switch for switch in told if tree.position(switch)[0] == POD]
        in_pod = sum(tree.position(switch)[0] == POD for switch in all_of)
        row[f"{name}, its pod"] = f"{len(near)} of {in_pod}"
        row[f"{name}, elsewhere"] = f"{len(told) - len(near)} of {len(all_of) - in_pod}"

    return row


def table(data: Data) -> pl.DataFrame:
    """Return a row for each size, kind of link and way to weigh."""
    return pl.DataFrame(
        [
            {
                "k": k,
                "link": kind,
                "load balancer": style.label(policy),
                **counted(k, kind, policy),
                "switches": f"{len(changed(k, kind, policy))} of {FatTree(k).switches}",
            }
            for k in SIZES
            for kind in KINDS
            for policy in POLICIES_SHOWN
        ]
    )


def draw(data: Data) -> dict[str, Any]:
    """Draw a small fat-tree for each kind of link, and its switches by their updates."""
    return {f"{kind} link": _diagram(kind) for kind in KINDS}


def _diagram(kind: str) -> Any:
    tree = FatTree(DRAWN)
    changes = changed(DRAWN, kind, "ofan")
    spots = {switch: _spot(tree, switch) for switch in range(tree.switches)}
    picture, axes = style.panel(4.6, 2.4)
    for link in range(tree.links):
        lower, upper = (spots[end.switch] for end in tree.link_ends(link))
        failed = link == failing(tree, kind)
        axes.plot(
            *zip(lower, upper, strict=True),
            color="#D55E00" if failed else "#bbbbbb",
            linestyle="--" if failed else "-",
            linewidth=2 if failed else 0.6,
            zorder=1,
            label="failed link" if failed else None,
        )

    shades = {ALL: "#0072B2", SOME: "#9ecae1", NO: "#ffffff"}
    for name, shade in shades.items():
        places = [spot for switch, spot in spots.items() if _extent(changes.get(switch)) == name]
        axes.scatter(
            [x for x, _ in places],
            [y for _, y in places],
            s=120,
            marker="s",
            color=shade,
            edgecolors="#333333",
            linewidths=0.6,
            zorder=2,
            label=name,
        )

    axes.set_yticks(range(len(TIERS)), TIERS.values())
    axes.set_xticks(
        [tree.edges_per_pod * (pod + 0.5) - 0.5 for pod in range(tree.pods)],
        [f"pod {pod + 1}" for pod in range(tree.pods)],
    )
    axes.set_ylim(-0.5, len(TIERS) - 0.5)
    axes.grid(False)
    style.legend_above(picture, axes, columns=2)
    return picture


def _spot(tree: FatTree, switch: int) -> tuple[float, float]:
    """Return where a switch is drawn: pods side by side, cores over all of them."""
    if switch >= tree.first_core:
        return (switch - tree.first_core + 0.5) * tree.edges / tree.cores - 0.5, 2.0

    pod, position = tree.position(switch)
    return float(pod * tree.edges_per_pod + position), float(switch >= tree.edges)


def _extent(change: Changed | None) -> str:
    if change is None:
        return NO

    return ALL if change.destinations >= change.beyond else SOME


FIGURE = Figure(
    name="told",
    title="Which switches must hear of a failure",
    paper="Figure 2 (failure diagram), section 5.2",
    caption=(
        "One link of the first pod fails. A switch must hear of it if a schedule of its own is "
        "another one afterwards, or if the link ends at it; counted in the schedules that "
        "controller and simulator take from the same arrays. Pictures: k = 4, Ofan with weights."
    ),
    draw=draw,
    table=table,
)
