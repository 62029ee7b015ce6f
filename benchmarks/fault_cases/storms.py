"""Many failures within a second, in virtual time."""

from statistics import median

import numpy as np

from benchmarks.fault_cases.cases import ANNOUNCED, PROBE
from benchmarks.fault_cases.measuring import Sample
from emulation.virtual.fabric import VirtualFabric
from fattree.demand import traffic
from fattree.experiment.model import (
    Collective,
    Controller,
    Fabric,
    FailureEvent,
    Failures,
    Scenario,
)
from fattree.routes.stranded import cut_off
from fattree.routes.wecmp import LinkState
from fattree.shape.addressing import link_name
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_MS


def storm(tree: FatTree, count: int, seed: int) -> tuple[FailureEvent, ...]:
    """Return so many failures within a second that leave every pair of hosts a path."""
    rng = np.random.default_rng(seed)
    everybody = traffic.flows(
        Scenario(fabric=Fabric(k=tree.k), collective=Collective(matrix="all_to_all"))
    )
    while True:
        chosen = rng.choice(tree.links, count, replace=False).tolist()
        if not len(cut_off(tree, LinkState.without(tree, frozenset(chosen)), everybody)):
            times = rng.uniform(0.2e9, 1.2e9, count)
            return tuple(
                FailureEvent(link=link_name(tree, link), down_ns=down_ns)
                for link, down_ns in zip(chosen, times, strict=True)
            )


def virtual_storm(controller: Controller, seed: int) -> Sample:
    """Let 30 of the 256 links of k = 8 fail within a second of virtual time.

    32 flows cross the fabric.
    """
    tree = FatTree(8)
    pairs = tuple((host, (host + 64) % 128) for host in range(0, 128, 4))
    fabric = VirtualFabric(
        Scenario(
            fabric=Fabric(k=8, rate_gbps=0.0016, latency_ns=6e6),
            collective=Collective(matrix="pairs", pairs=pairs, message_bytes=70 * 4096),
            failures=Failures(events=storm(tree, 30, seed)),
            controller=controller,
            seed=seed,
        )
    )

    outcome = fabric.run()
    assert len(fabric.controller.failed) == 30 and outcome.accounts.unaccounted == 0
    waits = [((seen.installed_ps or 0) - seen.at_ps) / PS_PER_MS for seen in fabric.installations]

    return Sample(outcome.accounts.lost, median(waits))


STORMS = (
    ("30 of 256 links fail within a second (k = 8)", "virtual time, G = 0", ANNOUNCED),
    ("30 of 256 links fail within a second (k = 8)", "virtual time", PROBE),
)


def storms(controller: Controller, runs: int) -> list[Sample]:
    """Measure a storm of failures in virtual time."""
    return [virtual_storm(controller, seed) for seed in range(1, runs + 1)]
