import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from emulation.errors import NetworkError
from emulation.mininet.counters import PortCounters
from emulation.mininet.kernel import InterfaceCounts
from emulation.mininet.switch_processes import Switches
from emulation.mininet.targets import BMV2, SOFTSWITCH, bmv2, bmv2_queues
from emulation.mininet.targets.bmv2 import refuse_without_bmv2
from emulation.mininet.targets.bmv2_queues import Setting, queue_settings, rate_settings
from emulation.programs.switch_program import Priorities
from fattree.experiment.model import Scenario
from ofan_p4.softswitch.daemon.options import parse

SCENARIO = Scenario(fabric={"k": 4, "rate_gbps": 0.002, "latency_ns": 5e6, "queue_bytes": 0})
FOLDER = Path("/run/ofan")


def test_our_switch_gets_the_figures_of_the_scenario():
    options = parse(SOFTSWITCH.command(SCENARIO, 1, FOLDER, 0)[1:])
    assert options.interfaces == ((1, "e0_1-1"), (2, "e0_1-2"), (3, "e0_1-3"), (4, "e0_1-4"))
    assert (options.device_id, options.address) == (2, "unix:/run/ofan/edge0_1.grpc")
    assert options.rate_bps.of(1) == 2_000_000
    assert options.delay_us.of(4) == 5_000
    assert options.gap_bytes.of(2) == SCENARIO.packets.gap_bytes


def test_unlimited_queues_stay_unlimited():
    assert parse(SOFTSWITCH.command(SCENARIO, 1, FOLDER, 0)[1:]).depth_bytes.of(1) > 10**15


def test_thresholds_of_links_between_switches_count_the_header():
    fabric = {"k": 4, "rate_gbps": 0.002, "queue_bytes": 10**6, "flow_control": "pfc"}
    paused = Scenario(fabric=fabric)
    options = [parse(SOFTSWITCH.command(paused, 1, FOLDER, header)[1:]) for header in (0, 4)]
    # Ports 1 and 2 of an edge are hosts'.
    assert options[0].pfc.of(1) == options[1].pfc.of(1)
    plain, longer = (option.pfc.of(3) for option in options)
    assert plain is not None
    assert longer is not None
    # Two packets beyond the threshold, and the bytes of the packet for which a pause waits.
    assert plain[1] - longer[1] == 3 * 4
    assert plain[2] - longer[2] == 3 * 4 + 2 * 4


def test_every_switch_draws_other_random_numbers():
    seeds = {
        parse(SOFTSWITCH.command(SCENARIO, switch, FOLDER, 0)[1:]).seed for switch in range(20)
    }
    assert len(seeds) == 20


def test_bmv2_gets_general_options_before_the_dashes_and_target_options_after():
    command = BMV2.command(SCENARIO, 19, FOLDER, 0)
    general, target = command[: command.index("--")], command[command.index("--") + 1 :]
    assert general[:3] == ["simple_switch_grpc", "--thrift-port", "9109"]
    assert general[-2:] == ["-i", "4@c1_1-4"]
    assert target == [
        "--grpc-server-addr",
        "unix:/run/ofan/core1_1.grpc",
        "--cpu-port",
        "510",
        "--priority-queues",
        "2",
    ]


def test_a_switch_of_bmv2_is_ready_when_it_listens_to_thrift_too(tmp_path, monkeypatch):
    """It begins to do so later than to P4Runtime: 1 of 23 starts was ended by that."""
    with socket.create_server(("127.0.0.1", 0)) as thrift:
        monkeypatch.setattr(bmv2_queues, "FIRST_THRIFT_PORT", thrift.getsockname()[1] - 1)
        names = []
        asked = SimpleNamespace(await_all=lambda is_ready, _: names.append(is_ready("edge0_1")))
        for target in (BMV2, SOFTSWITCH):
            switches = Switches(SCENARIO, target, tmp_path, asked)
            switches.await_ready()

        with socket.socket(socket.AF_UNIX) as grpc:
            grpc.bind(str(tmp_path / "edge0_1.grpc"))
            grpc.listen()
            switches = Switches(SCENARIO, BMV2, tmp_path, asked)
            switches.await_ready()
            thrift.close()
            switches.await_ready()

    assert names == [False, False, True, False]


def test_without_bmv2_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(bmv2.shutil, "which", lambda _name: None)
    with pytest.raises(NetworkError, match="simple_switch_grpc is not on PATH: install BMv2"):
        refuse_without_bmv2()


def test_bmv2_gives_acks_a_queue_that_is_faster_by_as_much_as_they_are_shorter():
    assert [
        (setting.method.removeprefix("set_egress_priority_queue_"), setting.value)
        for setting in queue_settings(SCENARIO, 0)
        if setting.port == 1
    ] == [
        ("rate", 60),
        ("depth", 1 << 20),
        ("rate", 2976),
        ("depth", 1 << 20),
    ]


def test_a_slow_port_of_bmv2_sends_a_share_of_its_packets():
    settings = [(rate.port, rate.queue, rate.value) for rate in rate_settings(SCENARIO, 0, 3, 0.25)]
    assert settings == [(3, 0, 15), (3, 1, 744)]


def test_a_setting_is_a_strict_thrift_call():
    assert Setting("set_egress_priority_queue_rate", 3, 1, 60).call() == bytes.fromhex(
        "80010001 0000002c" + b"simple_switch:set_egress_priority_queue_rate".hex() + "00000000"
        "08 0001 00000003  08 0002 00000001  0a 0003 000000000000003c  00"
    )


def test_a_bmv2_that_misses_a_library_is_told_apart_from_none(monkeypatch, tmp_path):
    fake = tmp_path / "simple_switch_grpc"
    fake.write_text(
        "#!/bin/sh\necho 'error while loading shared libraries: libpi.so.0' >&2\nexit 127\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(
        NetworkError, match="does not start: error while loading shared libraries: libpi"
    ):
        refuse_without_bmv2()


@pytest.mark.parametrize(
    ("target", "detection", "queues"),
    [
        (SOFTSWITCH, "announced", Priorities(0, 0)),
        (SOFTSWITCH, "probe", Priorities(1, 0)),
        (BMV2, "announced", Priorities(1, 1)),
        (BMV2, "probe", Priorities(1, 1)),
    ],
)
def test_a_switch_has_as_many_queues_as_its_program_uses(target, detection, queues):
    controller = SCENARIO.controller.model_copy(update={"detection": detection})
    scenario = SCENARIO.model_copy(update={"controller": controller})
    command = target.command(scenario, 1, FOLDER, 0)
    assert target.priorities(scenario) == queues
    assert command[command.index("--priority-queues") + 1] == str(1 + queues.control)


def test_what_bmv2_counts_is_what_the_kernel_has_seen():
    kernel = {
        1: InterfaceCounts(sent=5, sent_bytes=500, refused=1, received=8),
        2: InterfaceCounts(sent=1, sent_bytes=100, refused=0, received=2),
    }
    counters = BMV2.counters(FOLDER / "edge0_0.stats", kernel)
    assert counters.ports[1] == PortCounters(packets=5, bytes=500, received=8)
    assert counters.unrouted == 10 - 7
    assert counters.ports[1].max_queue_bytes is None, "nobody has looked"


def test_what_a_target_cannot_do_it_says():
    assert "announced or probe" in BMV2.refused_detections["netlink"]
    assert "--switch softswitch" in BMV2.refused_registers
    assert not SOFTSWITCH.refused_detections and not SOFTSWITCH.refused_registers
