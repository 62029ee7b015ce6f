"""Real packets beside virtual time: the same file, the same figures, and like completion times."""

import resource
import time
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from emulation.commands.mininet_demo import run_twins
from emulation.errors import NetworkError, UnsupportedError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.limits import (
    COMFORTABLE_PACKETS_PER_SECOND,
    refuse_unsupported,
    switch_packets_per_second,
)
from emulation.mininet.run import run_on
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Scenario
from fattree.texts.experiment_file import load_experiment

pytestmark = [pytest.mark.root, pytest.mark.slow]
FILE = Path(__file__).parents[3] / "experiments" / "mininet_k4.toml"
SCENARIOS = {scenario.policy: scenario for scenario in load_experiment(FILE, []).scenarios()}
REPETITIONS = 5
IN_FLIGHT = 8
# When it comes, when its length is over, and when its link's latency is: packets that come together
# wake a switch together. Asked for nothing, a process wakes a few times a second.
MOST_WAKINGS_PER_HOP = 3
MOST_IDLE_WAKINGS_PER_SECOND = 20
LOOKS = 40


@pytest.fixture(autouse=True)
def able():
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("policy", SCENARIOS)
def test_completion_times_agree_with_virtual_time(policy, tmp_path, record_property):
    scenario = SCENARIOS[policy]
    virtual = VirtualFabric(scenario).run()
    with mininet_fabric(scenario, Setup(folder=tmp_path / "ofan")) as fabric:
        outcomes = [run_on(fabric) for _ in range(REPETITIONS)]
    times = [outcome.cct_ps for outcome in outcomes]
    record_property("cct_ms", [round(cct_ps / 1e9, 1) for cct_ps in [virtual.cct_ps, *times]])
    assert scenario.bdp_packets >= IN_FLIGHT
    assert median(times) == pytest.approx(virtual.cct_ps, rel=0.15)
    assert all(
        outcome.accounts.unaccounted == outcome.accounts.dropped == 0 for outcome in outcomes
    )


def test_the_shipped_file_leaves_the_machine_room(tmp_path):
    # Processor time would measure this machine's speed. The file and our processes decide
    # how often packets come, that processes sleep between them, and how often they wake up.
    assert switch_packets_per_second(SCENARIOS["ofan"]) < COMFORTABLE_PACKETS_PER_SECOND
    with mininet_fabric(SCENARIOS["ofan"], Setup(folder=tmp_path / "ofan")) as fabric:
        pids = [*fabric.switches.processes.pids.values(), *fabric.agents.pids]
        assert awake_share(pids) < 0.8
        before = sum(map(wakings, pids))
        outcome = run_on(fabric)
        woken = sum(map(wakings, pids)) - before
    idle = MOST_IDLE_WAKINGS_PER_SECOND * len(pids) * outcome.end_ps / 1e12
    assert woken < MOST_WAKINGS_PER_HOP * outcome.hops + idle


def wakings(pid):
    """Return how often the threads of a process have slept and woken."""
    lines = [
        line
        for task in Path(f"/proc/{pid}/task").iterdir()
        for line in (task / "status").read_text().splitlines()
    ]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def awake_share(pids):
    """Return how much of two seconds the busiest process of an idle network does not sleep."""
    awake = Counter()
    for _ in range(LOOKS):
        time.sleep(2 / LOOKS)
        awake.update(pid for pid in pids if is_awake(pid))
    return max(awake.values(), default=0) / LOOKS


def is_awake(pid):
    """Return whether a process runs, or would like to."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"


@pytest.mark.timeout(300)
def test_80_switches_and_128_hosts_come_up_and_carry_a_permutation(tmp_path):
    scenario = Scenario(
        fabric={"k": 8, "rate_gbps": 0.001, "latency_ns": 5e6},
        collective={"message_bytes": 16 * 4096},
        transport={"rate_limit": 0.3},
    )
    with mininet_fabric(scenario, Setup(folder=tmp_path / "ofan")) as fabric:
        outcome = run_on(fabric)
        pids = [*fabric.switches.processes.pids.values(), *fabric.agents.pids]
        assert (
            sum(map(proportional_bytes, pids))
            + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            < 8e9
        )
    assert outcome.accounts.unaccounted == 0
    assert len(outcome.flows) == 128


def proportional_bytes(pid):
    """Return a process's memory, shared pages in proportion."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fabric": {"k": 4}}, r"try --set fabric.rate_gbps=0\.002 --set fabric.latency_ns"),
        (
            {"fabric": {"k": 16}},
            r"try --set fabric.rate_gbps=0\.001 --set transport.rate_limit=0\.0\d+ --set fabric",
        ),
        ({"failures": {"local_repair": True}}, "local_repair"),
        ({"packets": {"payload_bytes": 8957}}, "packets.payload_bytes = 8957: .* at most 8956$"),
        (
            {"policy": "host_dr", "packets": {"payload_bytes": 8937}},
            "packets.payload_bytes = 8937: .* at most 8936$",
        ),
    ],
)
def test_what_processes_cannot_do_is_refused(change, reason):
    with pytest.raises(UnsupportedError, match=reason):
        refuse_unsupported(Scenario(**{"fabric": {"k": 4, "rate_gbps": 0.001}, **change}))


def test_the_demo_breaks_a_link_by_command_on_both_networks():
    twins = run_twins(FILE)
    assert twins.real.accounts.lost > 0
    assert twins.virtual.accounts.lost > 0
    assert twins.real.accounts.unaccounted == 0
    assert twins.real.cct_ps == pytest.approx(twins.virtual.cct_ps, rel=0.25)
    assert "ofan link down agg0_0-core0_0" in twins.words()
