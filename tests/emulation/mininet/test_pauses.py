"""Pauses on real wires: switch processes and host agents, captured by the kernel, read by Scapy."""

import socket
from dataclasses import dataclass
from itertools import pairwise

import pytest
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether

import emulation.mininet.topology
from emulation.commands.pcap import decode, frames
from emulation.errors import NetworkError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.run import Run, run_on
from emulation.taps import tap_named
from fattree.experiment.model import Scenario
from fattree.shape.addressing import host_interface_name, switch_named
from fattree.units import PS_PER_SECOND
from hostagent.agents.process import inside

pytestmark = [pytest.mark.root, pytest.mark.slow]
CORE, UPLINK, SENDER, RECEIVER = "core0_0:1", "agg0_0:2", "h0_0_0", "h2_0_0"
# A packet with its gap takes 20.9 ms; hosts are patient, as their pauses are long.
RATE_BPS = 1_600_000
LATENCY_S = 0.005
SLOT_S = (4158 + 20) * 8 / RATE_BPS
# The most that processes may be late by, where the machine is busy.
LATE_S = 0.5
HELD_S = 3.0
QUANTA = round(HELD_S * RATE_BPS / 512)


def scenario(flow_control: str, **failures: object) -> Scenario:
    """Return two hosts that send to a third host, and meet at the core."""
    counts = {"pods": 3, "edges_per_pod": 1, "hosts_per_edge": 1, "aggs_per_pod": 1}
    return Scenario.model_validate(
        {
            "fabric": {
                **counts,
                "cores_per_agg": 1,
                "rate_gbps": RATE_BPS / 10**9,
                "latency_ns": LATENCY_S * 10**9,
                "queue_bytes": 135_000,
                "flow_control": flow_control,
            },
            "collective": {
                "matrix": "pairs",
                "pairs": ((0, 2), (1, 2)),
                "message_bytes": 100 * 4096,
            },
            "transport": {"receiver_share": False, "timer_floor_rtt": 200},
            "failures": failures,
        }
    )


@pytest.fixture
def processes(monkeypatch):
    """Return the processes in hosts' namespaces, once there is a network."""
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))

    host_processes = []
    listed = emulation.mininet.topology.host_processes

    def listing(*arguments):
        host_processes[:] = listed(*arguments)
        return host_processes

    monkeypatch.setattr(emulation.mininet.topology, "host_processes", listing)
    return host_processes


@dataclass
class Captured:
    """The frames of a port: control frames and data packets, in seconds of the capture."""

    control: list[tuple[float, bytes]]
    data: list[float]


def captured(folder, port) -> Captured:
    [path] = folder.glob(f"*{port.replace(':', '-')}.pcap")
    control, data = [], []
    for time, frame, _ in frames(path):
        if frame[12:14] == b"\x88\x08":
            control.append((time, frame))
        elif decode(time, frame).what == "DATA":
            data.append(time)

    return Captured(control, data)


def quanta(frame) -> int:
    return int(Ether(frame)[MACControlClassBasedFlowControl].c0_pause_time)


def silent(frames_of: Captured) -> list[float]:
    """Return how long the sender of these data packets was paused each time, and sent nothing.

    But for packets that had begun.
    """
    spans = []
    for (begin, frame), (end, _) in pairwise(frames_of.control):
        if quanta(frame):
            spans.append(end - begin)
            over = begin + SLOT_S + LATENCY_S + LATE_S
            assert not [time for time in frames_of.data if over < time < end]

    return spans


def test_pauses_are_frames_on_the_wire_and_nothing_is_lost(processes, tmp_path, capsys):
    chosen = scenario("pfc")
    tree = chosen.tree
    taps = tuple(tap_named(tree, port) for port in (CORE, UPLINK, SENDER, RECEIVER))
    pause = MACControlClassBasedFlowControl(c0_enabled=1, c0_pause_time=QUANTA)
    frame = bytes(Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:99") / pause)
    with mininet_fabric(
        chosen, Setup(taps=taps, captured=tmp_path, folder=tmp_path / "run")
    ) as net:
        with inside(processes[2]):
            stranger = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            stranger.bind((host_interface_name(tree, 2), 0))

        run = Run(net, chosen)
        run.start(with_events=True)
        # The receiver's own pause, once: no frame ever lets the edge go on.
        net.call_at(PS_PER_SECOND, lambda: stranger.send(frame))
        net.loop.run(lambda: run.is_over)
        outcome = run.outcome()
        stranger.close()

    # No host of ours pauses its switch.
    assert "h2_0_0 has paused its link: edge2_0 port 1 was held for" in capsys.readouterr().err
    accounts = outcome.accounts
    assert accounts.dropped == accounts.unrouted == accounts.unaccounted == 0, accounts.words()
    paused = {
        (result.switch, result.port): result.pauses for result in outcome.ports if result.pauses
    }
    core = switch_named(tree, "core0_0")
    assert {(core, 1), (core, 2)} <= set(paused)
    assert outcome.host_paused_ps > PS_PER_SECOND

    # The bytes, where they leave and where they come in.
    for port, who in ((CORE, core), (SENDER, switch_named(tree, "edge0_0"))):
        control = captured(tmp_path, port).control
        assert len(control) >= 2
        told = [quanta(result) for _, result in control]
        assert told == [0xFFFF, 0] * (len(told) // 2)
        for _, result in control:
            packet = Ether(result)
            fields = packet[MACControlClassBasedFlowControl]
            assert len(result) == 60 and result[36 - 2 :] == bytes(60 - 34)
            assert (packet.dst, packet.type, fields._op_code) == (
                "01:80:c2:00:00:01",
                0x8808,
                0x101,
            )
            assert result[16:18] == b"\0\1", "priority 0 alone"
            assert result[6:12] not in (bytes(6), bytes.fromhex("020000000099"))

        assert sum(map(bool, told)) == sum(
            result.pauses for result in outcome.ports if result.switch == who and result.port == 1
        )

    # Both kinds of senders: a switch, and a host. The edge was held for so long that they were.
    for port in (UPLINK, SENDER):
        assert max(silent(captured(tmp_path, port))) > HELD_S / 2

    at_receiver = captured(tmp_path, RECEIVER)
    [(held, _)] = at_receiver.control
    over = held + SLOT_S + LATENCY_S + LATE_S
    assert not [time for time in at_receiver.data if over < time < held + HELD_S]
    assert [time for time in at_receiver.data if time > held + HELD_S], "its timer has ended it"

    with mininet_fabric(scenario("none"), Setup(folder=tmp_path / "run")) as net:
        assert run_on(net).accounts.dropped > 0, "the same traffic, and nobody pauses"


def test_a_slow_link_that_pauses_loses_nothing(processes, tmp_path):
    slow = {"link": "agg1_0-core0_0", "rate": 0.5, "direction": "up"}
    with mininet_fabric(scenario("pfc", degraded=[slow]), Setup(folder=tmp_path / "run")) as net:
        outcome = run_on(net)

    accounts = outcome.accounts
    assert accounts.dropped == accounts.lost == accounts.unaccounted == 0, accounts.words()
    assert sum(port.pauses for port in outcome.ports) > 0


def test_a_lossy_link_loses_packets_and_pauses_and_holds_nobody_for_ever(processes, tmp_path):
    lossy = {"link": "agg1_0-core0_0", "share": 0.05}
    with mininet_fabric(scenario("pfc", losses=[lossy]), Setup(folder=tmp_path / "run")) as net:
        outcome = run_on(net)

    accounts = outcome.accounts
    assert accounts.lost > 0 and accounts.unaccounted == 0, accounts.words()
