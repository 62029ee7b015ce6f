"""What load balancing does to pauses: the runs behind the table of docs/lossless.md.

python -m benchmarks.tables pauses
"""

from collections.abc import Sequence

from emulation.outcomes.folder import record
from emulation.virtual.fabric import VirtualFabric
from fattree.policies import POLICIES
from fattree.shape.topology import SWITCH_LAYERS
from fattree.texts.experiment_file import load_experiment
from fattree.texts.shipped import EXPERIMENTS
from fattree.units import PS_PER_US

# Hosts never pause, so nothing that leads to one does.
LAYERS = SWITCH_LAYERS[:-1]
COLUMNS = ("load balancer", "CCT over the bound", "dropped", "pauses", "H>E", *LAYERS, "victims")


def paused(policy: str) -> Sequence[str]:
    """Return a load balancer's row: how often links were paused, and how long ports of a layer."""
    (scenario,) = load_experiment(EXPERIMENTS / "lossless.toml").alone(policy).scenarios()
    outcome = VirtualFabric(scenario).run()
    found = record(outcome, "virtual")
    times_ps = [sum(each.paused_ps for each in outcome.ports if each.layer == at) for at in LAYERS]
    return (
        POLICIES[policy].label,
        f"{100 * found.increase:.1f} %",
        f"{found.dropped:,}",
        f"{found.pauses:,}",
        f"{found.host_paused_ps / PS_PER_US:.1f}",
        *(f"{time_ps / PS_PER_US:.1f}" for time_ps in times_ps),
        f"{found.victims:,}",
    )
