"""A row for each flow of a run, in the columns that all networks share."""

import polars as pl

from fattree.addressing import host_name
from sim.results import Result


def flow_frame(result: Result) -> pl.DataFrame:
    """Return one row per flow; times in ps from the start of the run.

    `fct_ps` counts from when the flow could start: its own start, or the end of those before it.
    """
    flows = result.flows
    tree = result.scenario.tree
    names = [host_name(tree, host) for host in range(tree.hosts)]

    return pl.DataFrame(
        {
            "policy": [result.scenario.balancer] * len(flows.packets),
            "seed": [result.scenario.seed] * len(flows.packets),
            "flow": range(len(flows.packets)),
            "source": [names[host] for host in flows.source.tolist()],
            "destination": [names[host] for host in flows.destination.tolist()],
            "packets": flows.packets,
            "transmissions": result.transmissions,
            "planned_ps": flows.start_ps,
            "start_ps": result.start_ps,
            "first_ps": result.first_ps,
            "done_ps": result.done_ps,
            "fct_ps": result.done_ps - result.start_ps,
        }
    )
