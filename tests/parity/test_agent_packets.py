"""Packets of the user's own: the same events on both engines, the same times in the simulator."""

from pathlib import Path
from typing import Any

import pytest

from emulation.programs.own_program import own_program
from emulation.virtual import simulated
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import (
    AgentPacket,
    Collective,
    Fabric,
    LoadBalancer,
    OwnProgram,
    Packets,
    Scenario,
    Transport,
)
from tests.hostagent.own_packets import ALL, SHIM
from tests.parity.engines import assert_same, native
from tests.parity.test_native_equals_virtual import FAILING, TIGHT
from tests.python_network.fabric import PythonFabric
from tests.test_docs_your_own import BY_PATH

SMALL = Collective(message_bytes=11 * 4096 + 77)


def scenario(name: str, **settings: Any) -> Scenario:
    text, header_bytes = ALL[name]
    return Scenario(
        **{
            "agent_packet": AgentPacket(file="mine.py", text=text),
            "packets": Packets(header_bytes=header_bytes),
            "fabric": Fabric(k=4),
            "collective": SMALL,
            "seed": 5,
            **settings,
        }
    )


# A program of ours drops the shim's packets: it reads no IPv4 behind another ethertype.
PASSABLE = [name for name in ALL if name != "shim"]
MARKING = {
    "load_balancer": LoadBalancer(ecn_percent=0.5),
    "policy": "host_pkt_ar",
    "failures": FAILING["G = 2 RTT"],
}


@pytest.mark.parametrize(
    "transport", [Transport(), Transport(recovery="sack")], ids=["erasure", "sack"]
)
@pytest.mark.parametrize("name", PASSABLE)
def test_packets_of_ones_own_have_the_same_events(name: str, transport: Transport) -> None:
    experiment = scenario(name, transport=transport, **MARKING)
    theirs = PythonFabric(experiment).run()
    assert_same(native(experiment).run(), theirs)
    assert any(port.marked for port in theirs.ports)


@pytest.mark.parametrize("name", ["after UDP", "in IPv4"])
def test_lost_packets_and_waypoints_have_the_same_events(name: str) -> None:
    experiment = scenario(
        name, policy="host_dr", fabric=TIGHT, transport=Transport(recovery="sack")
    )
    assert_same(native(experiment).run(), PythonFabric(experiment).run())


def test_packets_as_ours_have_the_events_of_ours() -> None:
    mine = PythonFabric(scenario("ours")).run()
    assert mine.digest == PythonFabric(scenario("ours", agent_packet=None)).run().digest


def test_a_program_reads_the_header_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "by_path.p4"
    before = BY_PATH.replace(
        "AFTER_UDP path_t", "BEFORE_IPV4 path_t\n#define BEFORE_IPV4_TYPE 0x88B5"
    )
    file.write_text(before.replace("after_udp", "before_ipv4"))
    experiment = scenario("shim", policy="host_pkt", transport=Transport(recovery="sack"))
    program = own_program(OwnProgram(file=str(file), like="host_pkt"), experiment.tree).program
    theirs = PythonFabric(experiment, program).run()
    ours = VirtualFabric(experiment, program).run()
    assert_same(ours, theirs)
    result = simulated.run(experiment.model_copy(update={"program": str(file)}))
    assert result.done_ps.tolist() == [flow.done_ps for flow in theirs.flows]

    # The paths are those of the labels: without them every edge uses one uplink alone.
    fixed = SHIM.replace("path=flow.label", "path=0").replace("udp(49152)", "udp(flow.label)")
    same = experiment.model_copy(update={"agent_packet": AgentPacket(file="mine.py", text=fixed)})
    for outcome, used in ((theirs, 2), (PythonFabric(same, program).run(), 1)):
        loads = [port.bytes > 0 for port in outcome.ports if port.layer == "E>A"]
        assert [sum(loads[i : i + 2]) for i in range(0, len(loads), 2)] == [used] * 8
