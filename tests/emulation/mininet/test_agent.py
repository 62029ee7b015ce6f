import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import pytest

from emulation.commands.pcap import decode, frames
from emulation.mininet.capture import captures
from emulation.taps import tap_named
from fattree.experiment.model import Scenario
from hostagent.agents.agent import Channel

pytestmark = pytest.mark.root
SCENARIO = Scenario(
    fabric={"k": 2, "rate_gbps": 0.02, "latency_ns": 1e6},
    collective={"matrix": "pairs", "pairs": ((0, 1), (1, 0)), "message_bytes": 64 * 4096},
)
NAMES = ("h0_0_0", "h1_0_0")


@pytest.fixture
def processes(namespace):
    """Join two hosts by a veth pair, without any switch.

    Return the processes of their namespaces.
    """
    from emulation.mininet.topology import FabricHost, VethLink

    hosts = [FabricHost(name) for name in NAMES]
    first, second = (f"{name}-eth0" for name in NAMES)
    VethLink(
        *hosts,
        intfName1=first,
        intfName2=second,
        addr1="02:00:00:00:00:01",
        addr2="02:00:00:00:00:02",
    )
    for host in hosts:
        host.configDefault()
    yield [host.pid for host in hosts]
    for host in hosts:
        host.terminate()


@contextmanager
def serving(processes, *arguments):
    """Start a Python that serves both hosts."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, *arguments]
    with closing(ours), subprocess.Popen(command, stdin=theirs.fileno()) as process:
        theirs.close()
        channel = Channel(ours)
        channel.send({"hosts": [[n, pid, f"{NAMES[n]}-eth0"] for n, pid in enumerate(processes)]})
        assert channel.receive() == {"ready": 2}
        yield channel
        ours.close()
        assert process.wait(10) == 0


@pytest.fixture
def agent(processes):
    """Start an agent that serves both hosts."""
    with serving(processes, "-m", "hostagent.agents.agent") as channel:
        yield channel


def arm(agent, scenario=SCENARIO, limit_ps=10**13, number=0):
    agent.send(
        {
            "run": scenario.model_dump(),
            "number": number,
            "limit_ps": limit_ps,
            "quiet_ps": 10**11,
        }
    )
    assert agent.receive() == {"armed": 2}


def run(agent, **changes):
    arm(agent, **changes)
    agent.send({"start_ns": time.monotonic_ns() + 10_000_000})
    return agent.receive()


def test_flows_complete_at_the_paced_rate_and_every_packet_is_counted(agent):
    report = run(agent)
    counts = report["counts"]
    least_ps = 63 * SCENARIO.slot_ps + 2 * SCENARIO.latency_ps
    assert report["finished"]
    assert 128 <= counts["data_sent"] <= 140, "a late ACK may cost a few extra symbols"
    assert counts["data_sent"] + counts["acks_sent"] == counts["received"] + counts["missed"]
    for _, start_ps, first_ps, done_ps, _ in report["flows"]:
        assert start_ps <= first_ps <= done_ps - least_ps


def test_a_second_run_follows_the_first(agent):
    assert run(agent)["finished"]
    assert run(agent)["finished"]


CROWDED = """
import os, resource, socket
from hostagent.agents.agent import Channel, serve

resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
crowd = []

class Late(Channel):
    def receive(self):
        while len(crowd) < 1024:
            crowd.append(open(os.devnull))
        return super().receive()

serve(Late(socket.socket(fileno=0)))
"""


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2048,
    reason="this machine allows no process 2,048 descriptors",
)
def test_hosts_whose_descriptors_select_does_not_take_are_served(processes):
    with serving(processes, "-c", CROWDED) as agent:
        assert run(agent)["finished"]


def test_a_run_that_is_stopped_reports_what_is_unfinished(agent):
    arm(agent)
    agent.send({"start_ns": time.monotonic_ns() + 10**12})
    agent.send({"stop": True})
    report = agent.receive()
    assert not report["finished"]
    assert report["counts"]["data_sent"] == 0


def test_packets_of_a_run_that_was_stopped_do_not_count_in_the_next(agent):
    arm(agent)
    agent.send({"start_ns": time.monotonic_ns()})
    time.sleep(0.03)
    agent.send({"stop": True})
    first = agent.receive()
    arm(agent, number=1)
    agent.send({"start_ns": time.monotonic_ns() + 10_000_000})
    second = agent.receive()
    assert (first["run"], second["run"]) == (0, 1)
    assert not first["finished"] and second["finished"]
    for counts in (first["counts"], second["counts"]):
        assert counts["data_sent"] + counts["acks_sent"] == counts["received"] + counts["missed"]
        assert counts["data_sent"] > 0 and counts["stale"] == 0


def test_a_limit_ends_a_run(agent):
    assert not run(agent, limit_ps=3 * SCENARIO.slot_ps)["finished"]


def test_a_scenario_that_cannot_be_built_is_one_line(agent):
    scenario = SCENARIO.model_copy(
        update={"collective": SCENARIO.collective.model_copy(update={"pairs": ((0, 99),)})}
    )
    agent.send({"run": scenario.model_dump(), "number": 0, "limit_ps": 1, "quiet_ps": 1})
    assert "99" in agent.receive()["error"]


def test_a_capture_holds_every_packet_decoded(agent, processes, tmp_path):
    tap = tap_named(SCENARIO.tree, "h0_0_0")
    with captures([tap], processes, tmp_path) as (capture,):
        run(agent)
    lines = [decode(time_ps, frame) for time_ps, frame, _ in frames(tmp_path / "h0_0_0.pcap")]
    assert capture.packets == len(lines) >= 256
    data = [line for line in lines if line.what == "DATA" and line.source == "h0_0_0"]
    assert [line.psn for line in data] == list(range(len(data)))
    assert all(line.intact and line.destination == "h1_0_0" and line.size == 4154 for line in data)
    assert [line.time for line in lines] == sorted(line.time for line in lines)


def test_an_agent_dies_with_its_parent(processes):
    script = """
import os, socket, subprocess, sys
ours, theirs = socket.socketpair()
command = [sys.executable, "-m", "hostagent.agents.agent"]
child = subprocess.Popen(command, stdin=theirs)
print(child.pid, flush=True)
os.read(0, 1)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pidfd = os.pidfd_open(int(parent.stdout.readline()))
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    assert select.select([pidfd], [], [], 10)[0]
    os.close(pidfd)
