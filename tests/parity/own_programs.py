"""Drawn experiments with a user's program in switches, beside pauses, memory and faults.

    python -m tests.parity.own_programs              all 200
    python -m tests.parity.own_programs 40 --first 100 --seed 2

The simulator's windows, with machine code and with Python, and the readable network must agree. The
user's programs are a copy of ours, with a register of its own, and a program that we do not have;
the plain model judges a copy.
"""

from collections import Counter
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click

import p4src
from emulation.errors import FailedRunError
from emulation.virtual import simulated
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused
from fattree.policies import POLICIES
from fattree.shape.addressing import host_name, link_name
from fattree.shape.topology import FatTree
from sim.runs.results import Result
from tests import naive
from tests.naive.lossless import LosslessNetwork
from tests.parity import test_naive_against_sim
from tests.parity.engines import assert_same
from tests.parity.pausing import COUNTS, HORIZON_PS, all_of_naive, all_of_sim
from tests.parity.test_pauses import of_virtual
from tests.python_network.fabric import PythonFabric
from tests.table.rows import EXPERIMENTS

COUNT = 200
# The load balancers of the programs copied: a load balancer for each kind of choice.
COPIED = (
    "flow",
    "simple_rr",
    "switch_pkt",
    "jsq",
    "switch_pkt_ar",
    "rsq",
    "ofan",
    "ofan_jsq_start",
    "themis",
    "host_pkt_ar",
)
FAULTS = ("", "links", "slow", "losses", "hosts", "all")
# Trimming cuts nothing where pauses leave no queue full.
SWITCHES = [case for case in product((False, True), repeat=3) if not (case[2] and case[0])]
SHAPES: tuple[dict[str, Any], ...] = (
    {"k": 4},
    {"pods": 2, "edges_per_pod": 2, "hosts_per_edge": 3, "aggs_per_pod": 2, "cores_per_agg": 1},
    {"edges_per_pod": 3, "hosts_per_edge": 3, "aggs_per_pod": 2},
)


class Case(NamedTuple):
    """A scenario with a program, and whether the plain model knows the program's rule."""

    scenario: Scenario
    is_copy: bool
    about: str


def copy_of(policy: str, folder: Path) -> Path:
    """Return a file of the user's with the program of a load balancer and a register more."""
    name = POLICIES[policy].program
    text = p4src.path(name).read_text(encoding="utf-8")
    before, start, after = text.partition("    apply {\n")
    assert start
    count = "        arrived.read(count, 0);\n        arrived.write(0, count + 1);\n"
    declared = "    register<bit<32>>(1) arrived;\n    bit<32> count;\n\n"
    file = folder / f"copy_of_{name}.p4"
    if not file.exists():
        file.write_text(f"{before}{declared}{start}{count}{after}", encoding="utf-8")

    return file


def case(number: int, seed: int, folder: Path) -> Case:
    """Return the experiment of a number, of those of a seed; its programs go to a folder."""
    random = Random(f"{seed} {number}")
    pauses, shares, trims = SWITCHES[number % len(SWITCHES)]
    faults = FAULTS[number // len(SWITCHES) % len(FAULTS)]
    # Of ten programs nine are copies.
    is_copy = random.random() < 0.9
    policy = random.choice(COPIED) if is_copy else "simple_rr"
    program = copy_of(policy, folder) if is_copy else EXPERIMENTS / "two_choices.p4"
    settings = drawn(random, policy, pauses=pauses, shares=shares, trims=trims, faults=faults)
    named = (("PFC", pauses), ("shared memory", shares), ("trimming", trims), (faults, faults))
    about = ", ".join([program.name, policy, *(name for name, is_so in named if is_so)])
    return Case(Scenario.model_validate(settings | {"program": str(program)}), is_copy, about)


def drawn(
    random: Random, policy: str, *, pauses: bool, shares: bool, trims: bool, faults: str
) -> dict[str, Any]:
    """Draw a small fabric with hosts that meet at receivers, its settings and its faults."""
    payload = random.choice((4096, 1000))
    whole = payload + 62
    fabric: dict[str, Any] = {
        **random.choice(SHAPES),
        "latency_ns": random.choice((500, 83.56, 1)),
        "rate_gbps": random.choice((800, 333)),
        "queue_bytes": random.choice((4, 8, 20)) * whole,
    }
    if pauses:
        # Little headroom loses packets, as it does where pauses come too late.
        headroom = random.choice((2, 40)) * whole
        fabric |= {"flow_control": "pfc", "headroom_bytes": headroom}
        fabric["queue_bytes"] = headroom + random.choice((2, 3, 8)) * whole
    if shares:
        fabric |= {"buffer": "shared", "buffer_alpha": random.choice((0.5, 1, 4))}

    recovery, congestion = random.choice(
        (("sack", "fixed"), ("sack", "dcqcn"), ("sack", "nscc"), ("erasure", "fixed"))
        if trims
        else (("go_back_n", "fixed"), ("go_back_n", "dcqcn"), ("sack", "mswift"), ("sack", "fixed"))
    )
    settings: dict[str, Any] = {
        "policy": policy,
        "seed": random.getrandbits(62),
        "fabric": fabric,
        "packets": {"payload_bytes": payload, "gap_bytes": random.choice((20, 0))},
        "transport": {
            "recovery": recovery,
            "congestion": congestion,
            "trimming": trims,
            "timer_floor_rtt": random.choice((3, 30)),
            "random_phases": random.random() < 0.7,
        },
        "load_balancer": {"ecn_percent": random.choice((None, 20))},
    }
    tree = Scenario.model_validate(settings).tree
    packets = random.randint(8, 24) if pauses else random.randint(2, 12)
    size = packets * payload + random.choice((0, 1, 100))
    pairs = [(host, host % 2) for host in range(2, tree.hosts)]
    return settings | {
        "collective": {"matrix": "pairs", "message_bytes": size, "pairs": pairs},
        "failures": broken(random, tree, faults),
    }


def broken(random: Random, tree: FatTree, faults: str) -> dict[str, Any]:
    """Draw faults of a kind, or of all; failed links come back, so that runs end."""

    def link() -> str:
        return link_name(tree, random.randrange(tree.links))

    def outage() -> dict[str, Any]:
        down_ns = random.randrange(8_000)
        return {"down_ns": down_ns, "up_ns": down_ns + random.randint(1, 8_000)}

    kinds: dict[str, list[dict[str, Any]]] = {
        "events": [{"link": link(), **outage()} for _ in range(2)],
        "degraded": [{"link": link(), "rate": 0.25, "at_ns": random.randrange(5_000)}],
        "losses": [{"link": link(), "share": 0.05}],
    }
    hosts = [{"host": host_name(tree, random.randrange(tree.hosts)), **outage()}]
    rtts = random.choice((0, 1.5, float("inf")))
    repairs = random.random() < 0.3
    how = {"convergence_rtt": rtts, "local_repair": repairs}
    of_kinds: dict[str, dict[str, Any]] = {
        "": {},
        "links": {"events": kinds["events"]} | how,
        "slow": {"degraded": kinds["degraded"]} | how,
        "losses": {"losses": kinds["losses"]},
        "hosts": {"events": hosts} | how,
        "all": kinds | {"events": [*kinds["events"], *hosts]} | how,
    }
    return of_kinds[faults]


def judge(drawn_case: Case) -> Counter[str]:
    """Run an experiment everywhere and compare; return the events in it, counted by name."""
    scenario = drawn_case.scenario
    program = simulated.program_of(scenario)
    ours = scenario.model_copy(update={"program": None})
    try:
        result = simulated.run(scenario, horizon_ps=HORIZON_PS)
    except FailedRunError as error:
        assert_endless(drawn_case, str(error))
        return Counter(endless=1)

    outcome = PythonFabric(ours, program).run(HORIZON_PS)
    assert [flow.done_ps for flow in outcome.flows] == result.done_ps.tolist()
    assert outcome.end_ps == result.end_ps
    assert outcome.accounts.unaccounted == 0
    assert of_virtual(outcome)["ports"] == of_result(result)
    assert_same(VirtualFabric(ours, program, is_interpreted=True).run(HORIZON_PS), outcome)
    if drawn_case.is_copy:
        assert_plain(ours, result)

    ports = result.ports
    counters = ("dropped", "trimmed", "pauses", "lost_to_failure", "marked")
    seen = {name: int(getattr(ports, name).sum() > 0) for name in counters}
    return Counter(seen) + Counter(judged=int(drawn_case.is_copy), equal=1)


def of_result(result: Result) -> list[dict[str, int]]:
    """Return each port's counts, as `of_virtual` has them."""
    names = (*COUNTS, "max_queue_bytes")
    columns = [getattr(result.ports, name).tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def assert_plain(scenario: Scenario, result: Result) -> None:
    """Compare a run of a copy with the plain model of the load balancer that it copies."""
    if is_paused(scenario):
        network = LosslessNetwork(scenario)
        network.run(HORIZON_PS)
        assert all_of_sim(result) == all_of_naive(network)
        return

    plain = naive.run(scenario, HORIZON_PS)
    assert test_naive_against_sim.of_sim(result) == test_naive_against_sim.of_naive(plain)


def assert_endless(drawn_case: Case, complaint: str) -> None:
    """Check that a run that does not end in the simulator ends nowhere."""
    ours = drawn_case.scenario.model_copy(update={"program": None})
    try:
        PythonFabric(ours, simulated.program_of(drawn_case.scenario)).run(HORIZON_PS)
    except FailedRunError as error:
        assert str(error).partition(" µs, ")[2] == complaint.partition(" µs, ")[2]
    else:
        raise AssertionError(f"only the simulator does not end: {complaint}")

    if drawn_case.is_copy:
        network = LosslessNetwork(ours) if is_paused(ours) else naive.Network(ours)
        try:
            network.run(HORIZON_PS)
        except TimeoutError:
            return

        raise AssertionError(f"the plain model ends: {complaint}")


@click.command()
@click.argument("count", type=click.IntRange(1), default=COUNT)
@click.option("--first", type=click.IntRange(0), default=0, help="The first one's number.")
@click.option("--seed", type=int, default=1)
def main(count: int, first: int, seed: int) -> None:
    """Judge drawn experiments, and print in how many of them each event happened."""
    total: Counter[str] = Counter()
    failed = []
    with TemporaryDirectory() as folder:
        for number in range(first, first + count):
            drawn_case = case(number, seed, Path(folder))
            try:
                total += judge(drawn_case)
            except AssertionError:
                failed.append(number)
                click.echo(f"{number} differs: {drawn_case.about}")

            if number % 10 == 9:
                click.echo(f"{number + 1 - first} of {count}: {dict(total)}")

    click.echo(f"seed {seed}, {count} experiments: {dict(total)}; different: {failed or 'none'}")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
