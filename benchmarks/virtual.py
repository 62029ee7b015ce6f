"""How fast the virtual network is: packets through P4 switches per second of CPU.

It runs k = 4 with a permutation of 256 packets a host.
"""

import time

from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Fabric, Scenario
from fattree.policies import PAPER_POLICIES


def main() -> None:
    """Print one line per load balancer."""
    print(
        f"{'load balancer':<20} {'build s':>8} {'run s':>8}"
        f" {'switch-packets':>15} {'per second':>11}"
    )
    for policy in PAPER_POLICIES.values():
        started = time.process_time()
        fabric = VirtualFabric(Scenario(policy=policy.slug, fabric=Fabric(k=4)))
        build = time.process_time() - started
        outcome = fabric.run()
        rate = outcome.hops / outcome.cpu_seconds
        print(
            f"{policy.label:<20} {build:8.2f} {outcome.cpu_seconds:8.2f}"
            f" {outcome.hops:15,} {rate:11,.0f}"
        )


if __name__ == "__main__":
    main()
