"""Data frames of a run, a row per flow and a row per port: the same columns on every network.

Results folders store them as `flows.parquet` and `ports.parquet`. Hosts, switches and links have
their names, as in commands and files; times are picoseconds from the start of the run.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from fattree.counters import PORT_COUNTERS
from fattree.experiment.model import Scenario
from fattree.records.naming import scenario_hash
from fattree.shape.addressing import host_name, switch_name
from fattree.shape.topology import FatTree

if TYPE_CHECKING:
    import polars as pl

Column: TypeAlias = Sequence[Any] | NDArray[Any]


def flow_frame(
    scenario: Scenario,
    policy: str,
    *,
    source: Column,
    destination: Column,
    packets: Column,
    transmissions: Column,
    planned_ps: Column,
    start_ps: Column,
    first_ps: Column,
    done_ps: Column,
) -> "pl.DataFrame":
    """Return one row per flow: planned start, earliest possible start, first packet, end.

    `policy` is the load balancer; `source` and `destination` are numbers of hosts, and become
    names. `fct_ps` counts from the earliest possible start: the planned start, or the end of the
    flows before.
    """
    import polars as pl

    tree = scenario.tree
    hosts = [host_name(tree, host) for host in range(tree.hosts)]
    return pl.DataFrame(
        {
            **_run(scenario, policy, len(source)),
            "flow": range(len(source)),
            "source": [hosts[host] for host in source],
            "destination": [hosts[host] for host in destination],
            "packets": packets,
            "transmissions": transmissions,
            "planned_ps": planned_ps,
            "start_ps": start_ps,
            "first_ps": first_ps,
            "done_ps": done_ps,
        }
    ).with_columns(fct_ps=pl.col("done_ps") - pl.col("start_ps"))


def port_frame(
    scenario: Scenario,
    policy: str,
    *,
    packets: Column,
    bytes: Column,
    counts: Mapping[str, Column],
    max_queue_bytes: Column,
    mean_queue_bytes: Column,
) -> "pl.DataFrame":
    """Return one row per output port of every switch, in the order of switches and ports.

    `counts` are the PORT_COUNTERS.
    """
    import polars as pl

    tree = scenario.tree
    places = [(switch, port) for switch in range(tree.switches) for port in tree.ports(switch)]
    return pl.DataFrame(
        {
            **_run(scenario, policy, len(places)),
            "link": [port_name(tree, *position) for position in places],
            "layer": [tree.layer_of(*position) for position in places],
            "packets": packets,
            "bytes": bytes,
            **{name: counts[name] for name in PORT_COUNTERS},
            "max_queue_bytes": max_queue_bytes,
            "mean_queue_bytes": mean_queue_bytes,
        }
    )


def _run(scenario: Scenario, policy: str, rows: int) -> dict[str, "pl.Series"]:
    """Return the columns that name the run of a number of rows."""
    import polars as pl

    values = {
        "policy": policy,
        "seed": scenario.seed,
        "scenario_hash": scenario_hash(scenario, policy),
    }
    return {name: pl.Series([value]).new_from_index(0, rows) for name, value in values.items()}


def port_name(tree: FatTree, switch: int, port: int) -> str:
    """Return for example `edge0_1-agg0_0`, in the direction of the packets."""
    far = tree.neighbour(switch, port)
    far_name = switch_name(tree, far.switch) if far else host_name(tree, tree.host_at(switch, port))
    return f"{switch_name(tree, switch)}-{far_name}"
