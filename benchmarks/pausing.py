"""The effect of load balancing on pauses: the runs behind two tables of docs/lossless.md.

python -m benchmarks.tables pauses slow_link
"""

from collections.abc import Sequence
from functools import partial
from statistics import mean, stdev

from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.shape.topology import SWITCH_LAYERS
from fattree.texts.experiment_file import load_experiment
from fattree.texts.shipped import EXPERIMENTS
from fattree.units import PS_PER_US
from sim.runs.engine import run
from sim.runs.layers import by_layer
from sim.runs.results import Result

# The shipped experiment, on 128 hosts.
K = 8
SEEDS = 5
# Hosts never pause, so nothing that leads to one does.
LAYERS = SWITCH_LAYERS[:-1]
COLUMNS = ("load balancer", "CCT over the bound", "dropped", "pauses", "H>E", *LAYERS, "victims")


SLOW_COLUMNS = (
    *("load balancer", "routes know: CCT over the bound", "pauses", "victims", "back"),
    *("routes do not: CCT over the bound", "pauses", "victims", "back", "dropped"),
)


def scenarios(policy: str) -> list[Scenario]:
    """Return a load balancer's runs, a seed each."""
    settings = (f"fabric.k={K}", f"seeds={SEEDS}")
    return list(load_experiment(EXPERIMENTS / "lossless.toml", settings).alone(policy).scenarios())


def paused(policy: str) -> Sequence[str]:
    """Return a load balancer's row: how often links were paused, and how long ports of a layer."""
    results = [run(scenario) for scenario in scenarios(policy)]
    paused_us = [paused_by_layer(result) for result in results]
    return (
        POLICIES[policy].label,
        spread([100 * result.increase for result in results], ".1f") + " %",
        f"{sum(result.record.dropped for result in results):,}",
        spread([result.record.pauses for result in results], ",.1f"),
        *(f"{mean(layer):,.1f}" for layer in zip(*paused_us, strict=True)),
        spread([result.record.victims for result in results], ",.1f"),
    )


def paused_by_layer(result: Result) -> list[float]:
    """Return how long hosts, and each layer's ports together, were paused, in µs."""
    layers = by_layer(result.scenario.tree, result.ports.paused_ps)[:-1]
    times_ps = [result.host_paused_ps, *(int(layer.sum()) for layer in layers)]
    return [time_ps / PS_PER_US for time_ps in times_ps]


def spread(values: Sequence[float], form: str) -> str:
    """Return mean and standard deviation over the seeds; a plain 0 where all are 0."""
    if not any(values):
        return "0"

    return f"{mean(values):{form}} ± {stdev(values):{form}}"


# Without MRC, which is deployed with PFC off.
PAUSED = [slug for slug, row in POLICIES.items() if row.pauses]
ROWS = {slug: partial(paused, slug) for slug in PAUSED}


def beside_slow_link(policy: str) -> Sequence[str]:
    """Return a load balancer's row: RoCE with PFC, one link slow, routes that know it or do not."""
    aware, unaware = (slow_results(policy, rtts) for rtts in ("0", "inf"))
    dropped = sum(result.record.dropped for result in (*aware, *unaware))
    return POLICIES[policy].label, *slow_cells(aware), *slow_cells(unaware), f"{dropped:,}"


def slow_results(policy: str, convergence_rtt: str) -> list[Result]:
    """Return a load balancer's runs beside a slow link, a seed each."""
    settings = (f"failures.convergence_rtt={convergence_rtt}", f"seeds={SEEDS}")
    experiment = load_experiment(EXPERIMENTS / "roce_pfc_slow_link.toml", settings).alone(policy)
    return [run(scenario) for scenario in experiment.scenarios()]


def slow_cells(results: Sequence[Result]) -> Sequence[str]:
    """Return the means of runs: time, pauses, victims, how often senders went back."""
    records = [result.record for result in results]
    return (
        spread([100 * result.increase for result in results], ".1f") + " %",
        spread([record.pauses for record in records], ",.1f"),
        f"{mean(record.victims for record in records):,.1f}",
        f"{mean(record.returns for record in records):,.1f}",
    )


SLOW_ROWS = {slug: partial(beside_slow_link, slug) for slug in PAUSED}
