"""Names of the hosts that pause their links: no NIC of these networks does, so it is a storm."""

from collections.abc import Iterable, Mapping

from fattree.experiment.model import Scenario
from fattree.records.record import Record
from fattree.shape.addressing import host_name, switch_name
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_US


def storm_words(tree: FatTree, paused_ps: Mapping[tuple[int, int], int]) -> str:
    """Return which hosts have paused their links, by (switch, port) and time; '' if none has."""
    return "; ".join(
        f"{host_name(tree, tree.host_at(switch, port))} has paused its link:"
        f" {switch_name(tree, switch)} port {port} was held for {held_ps / PS_PER_US:,.3f} µs"
        for (switch, port), held_ps in paused_ps.items()
        if held_ps > 0 and tree.link_at(switch, port) is None
    )


def storms_asked(runs: Iterable[tuple[Scenario, Record]]) -> list[str]:
    """Return a line for each host that an experiment lets pause its link."""
    named = dict.fromkeys(storm for scenario, _ in runs for storm in scenario.failures.storms)
    return [
        f"{storm.host} paused its link from {storm.at_ns / 1000:g} µs"
        f" {f'to {storm.until_ns / 1000:g} µs' if storm.until_ns else 'on'} (failures.storms)"
        for storm in named
    ]
