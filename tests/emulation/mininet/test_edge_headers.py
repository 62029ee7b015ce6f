"""A program's header between edges on real interfaces, with all links and with a failed link."""

import shutil

import pytest

from emulation.commands.pcap import frames
from emulation.errors import NetworkError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.run import run_on
from emulation.mininet.targets import BMV2, SOFTSWITCH
from emulation.mininet.targets.bmv2 import PROGRAM
from emulation.programs.own_program import own_program
from emulation.taps import tap_named
from fattree.experiment.model import OwnProgram, Scenario
from fattree.texts.shipped import EXPERIMENTS

pytestmark = [pytest.mark.root, pytest.mark.slow]
ETHERTYPE = bytes.fromhex("88b6")
IPV4 = bytes.fromhex("0800")
PACKETS = 16
# Milliseconds where virtual time has microseconds.
DEFINES = {"GAP_US": 5000, "LOAD_SHIFT": 17, "STEP_SHIFT": 12, "FEEDBACK_SHIFT": 20}


@pytest.fixture(autouse=True)
def able():
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))


def scenario(**tables) -> Scenario:
    fabric = {"k": 4, "rate_gbps": 0.002, "latency_ns": 100}
    collective = {"message_bytes": PACKETS * 4096}
    return Scenario(policy="simple_rr", fabric=fabric, collective=collective, **tables)


@pytest.mark.parametrize("target", [SOFTSWITCH, BMV2], ids=lambda target: target.name)
@pytest.mark.parametrize("fails", [False, True], ids=["whole", "a link less"])
def test_conga_carries_a_permutation(target, fails, tmp_path):
    if target is BMV2 and shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is not on PATH")

    events = [{"link": "edge0_0-agg0_0", "down_ns": 0}] if fails else []
    of = scenario(failures={"events": events})
    macros = tuple((name, str(number)) for name, number in DEFINES.items())
    conga = OwnProgram(file=str(EXPERIMENTS / "gallery" / "conga.p4"))
    program = own_program(conga, of.tree, macros).program
    # Port 1 of an edge is a host's, port 4 the second uplink's.
    taps = (tap_named(of.tree, "h0_0_0"), tap_named(of.tree, "edge0_0:4"))
    setup = Setup(target, program, taps, captured=tmp_path, folder=tmp_path / "ofan")
    with mininet_fabric(of, setup) as fabric:
        outcome = run_on(fabric)

    assert outcome.accounts.unaccounted == outcome.accounts.dropped == outcome.accounts.lost == 0
    assert len(outcome.flows) == 16
    of_host, of_uplink = (
        [frame for _, frame, _ in frames(tmp_path / file)] for file in files(tmp_path)
    )
    assert {frame[12:14] for frame in of_host} == {IPV4}
    assert {frame[12:14] for frame in of_uplink} == {ETHERTYPE}
    # Behind the header of four bytes: IPv4 without options.
    assert {frame[18] for frame in of_uplink} == {0x45}
    longest = max(map(len, of_host))
    assert max(map(len, of_uplink)) == longest + program.edge_header_bytes == longest + 4


def files(folder) -> list[str]:
    """Return the names of both captures, the host's first."""
    return sorted((path.name for path in folder.glob("*.pcap")), key=lambda name: "edge" in name)


def test_links_that_carry_a_header_pause_and_drop_nothing():
    fabric = {"k": 4, "rate_gbps": 0.005, "flow_control": "pfc", "queue_bytes": 400_000}
    collective = {"matrix": "pairs", "message_bytes": 128 * 1024}
    collective["pairs"] = [[host, 0] for host in (4, 5, 8, 9, 12)]
    of = Scenario(
        policy="simple_rr",
        fabric={**fabric, "headroom_bytes": 340_000},
        packets={"payload_bytes": 1024},
        collective=collective,
        transport={"recovery": "go_back_n", "reorder_packets": 256, "timer_floor_rtt": 30},
    )
    queues = own_program(OwnProgram(file=str(EXPERIMENTS / "path_queues.p4")), of.tree).program
    with mininet_fabric(of, Setup(SOFTSWITCH, queues)) as network:
        outcome = run_on(network)

    assert outcome.accounts.dropped == outcome.accounts.unaccounted == 0
    assert sum(port.pauses for port in outcome.ports) > 0


def test_switches_report_writes_beyond_an_array(tmp_path, caplog):
    file = tmp_path / "tiny_on_wires.p4"
    file.write_text(
        '#include "fabric.p4"\n'
        "register<bit<32>>(1) tiny;\n"
        "control LoadBalancer(inout headers_t headers, inout metadata_t meta,\n"
        "                     inout standard_metadata_t standard_metadata) {\n"
        "    Schedule() schedule;\n"
        "    apply {\n"
        "        tiny.write((bit<32>) meta.length, 1);\n"
        "        schedule.apply(meta.schedule, 0, standard_metadata);\n"
        "    }\n"
        "}\n"
        '#include "switch.p4"\n'
    )
    of = scenario()
    tiny = own_program(OwnProgram(file=str(file)), of.tree).program
    with mininet_fabric(of, Setup(SOFTSWITCH, tiny)) as fabric:
        run_on(fabric)

    line = "register tiny has one cell, and is written beyond: such writes change nothing"
    assert f"tiny_on_wires.p4: {line}" in caplog.messages
