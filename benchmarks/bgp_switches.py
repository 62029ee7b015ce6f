"""P4 switches under BGP on Mininet: stages of 20 failures of each kind, flaps, and run times.

    sudo .venv/bin/python -I -m benchmarks.bgp_switches [--failures 20] [--seeds 3] [--switch bmv2]

The network stays up for all failures. A stage is the time from the change of the link to the first
planned schedule, and to the last acknowledgement of a switch.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.tables import spread
from controller.convergence import Convergence
from controller.fabric_controller import LinkChange
from controller.routed import ReportedController
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.run import run_on
from emulation.mininet.targets import TARGETS
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.routes.bgp import uplink_ratios
from fattree.units import PS_PER_MS, PS_PER_SECOND

# Some megabits a second: software switches are far from busy.
FABRIC = {"k": 4, "rate_gbps": 0.002, "latency_ns": 100}
BALANCERS = ("ofan", "host_dr", "switch_pkt_ar", "flow")
LINKS = 16
FLAPS = 10
FLAP_NS = 200_000_000


def scenario(policy: str, kind: str, seed: int = 1) -> Scenario:
    """Return a permutation of 64 packets a host."""
    return Scenario.model_validate(
        {
            "policy": policy,
            "seed": seed,
            "fabric": FABRIC,
            "collective": {"message_bytes": 64 * 4096},
            "controller": {"kind": kind},
        }
    )


def changed(fabric: MininetFabric, change: LinkChange) -> Convergence:
    """Change links, and wait until every switch has the schedules of its new routes."""
    convergence = fabric.change_links(change)
    assert convergence is not None
    fabric.loop.run(lambda: convergence.installed_ps is not None)
    return convergence


def stages(fabric: MininetFabric, first: int, count: int) -> None:
    """Print the stages of links that go down and come back, one after the other."""
    down, up = [], []
    # A k = 4 fat-tree has 16 links of a level: the first fail twice.
    for link in (first + number % LINKS for number in range(count)):
        down.append(changed(fabric, LinkChange(down=frozenset({link}))))
        up.append(changed(fabric, LinkChange(up=frozenset({link}))))

    for name, changes in (("down", down), ("up", up)):
        planned = [_ms(seen.planned_ps, seen) for seen in changes]
        installed = [_ms(seen.installed_ps, seen) for seen in changes]
        updates = [seen.updates for seen in changes]
        print(
            f"| {name} | {len(changes)} | {_quantiles(planned)} | {_quantiles(installed)}"
            f" | {_quantiles(updates)} |",
            flush=True,
        )


def _later(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _ms(at_ps: int | None, seen: Convergence) -> float:
    return ((at_ps or seen.at_ps) - seen.at_ps) / PS_PER_MS


def _quantiles(values: Sequence[float]) -> str:
    shortest, median, longest = np.percentile(values, [0, 50, 100])
    return f"{median:.0f} ({shortest:.0f} to {longest:.0f})"


def flaps(fabric: MininetFabric, link: int) -> str:
    """Let a link flap; return whether every switch is back at its first entries, and when."""
    switches = range(fabric.tree.switches)
    before = fabric.all_entries(switches)
    for _ in range(FLAPS):
        for change in (LinkChange(down=frozenset({link})), LinkChange(up=frozenset({link}))):
            fabric.change_links(change)
            fabric.loop.run(_later(FLAP_NS / 1e9))

    began = time.monotonic()
    controller = fabric.controller
    assert isinstance(controller, ReportedController)
    routes = uplink_ratios(fabric.tree, frozenset(), "bgp")
    fabric.loop.run(lambda: controller.has_routes(routes))
    same = fabric.all_entries(switches) == before
    return f"{FLAPS} flaps: routes are back after {time.monotonic() - began:.1f} s, same: {same}"


def run_times(seeds: int, setup: Setup) -> None:
    """Print completion times under the central controller and under BGP, without failures."""
    for policy in BALANCERS if seeds else ():
        times = {}
        for kind in ("central", "bgp"):
            ends = []
            for seed in range(1, seeds + 1):
                with mininet_fabric(scenario(policy, kind, seed), setup) as fabric:
                    outcome = run_on(fabric)

                assert outcome.accounts.unaccounted == 0
                ends.append(max(flow.done_ps for flow in outcome.flows) / PS_PER_SECOND)

            times[kind] = spread(ends, 3) if seeds > 1 else f"{ends[0]:.3f}"

        print(f"| {POLICIES[policy].label} | {times['central']} | {times['bgp']} |", flush=True)


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failures", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3, help="0: no run times")
    parser.add_argument("--switch", default="softswitch", choices=list(TARGETS))
    arguments = parser.parse_args()
    setup = Setup(TARGETS[arguments.switch], folder=Path(f"/run/ofan-bench-{os.getpid()}"))

    print("| change | links | first schedule planned (ms) | last installed | updates |")
    with mininet_fabric(scenario("ofan", "bgp"), setup) as fabric:
        run_on(fabric)
        for first in (0, fabric.tree.edge_links):
            stages(fabric, first, arguments.failures)

        print(flaps(fabric, fabric.tree.edge_links))

    print("| load balancer | central CCT (s) | under BGP |")
    run_times(arguments.seeds, setup)


if __name__ == "__main__":
    main()
