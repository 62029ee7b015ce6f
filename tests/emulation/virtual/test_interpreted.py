"""Programs that machine code cannot run, in the simulator's windows; and errors that end a run."""

from pathlib import Path
from typing import Any

import pytest

import p4src
from emulation.errors import EmulationError, FailedRunError, ProgramError
from emulation.programs.switch_program import Size, SwitchProgram, load_program
from emulation.virtual import simulated
from emulation.virtual.fabric import VirtualFabric
from emulation.virtual.interpreted import HostBytes, InterpretedMachine
from emulation.virtual.machine import only_python
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario, Transport
from hostagent.forms import write
from hostagent.own_packet import scenario_packets
from tests.doors import ROOT
from tests.parity.engines import assert_same
from tests.python_network.fabric import PythonFabric

MESSAGE = Collective(message_bytes=8 * 4096 + 100)
ALL_TO_ALL = Collective(matrix="all_to_all", message_bytes=5 * 4096 + 300)
SMALL = Scenario(fabric=Fabric(k=2), collective=MESSAGE)
NORTHBOUND = "if (is_northbound) {"
CLONES = (NORTHBOUND, f"{NORTHBOUND} clone(CloneType.I2E, 5);")
RESUBMITS = (
    "if (headers.ipv4.ttl < 2) {",
    "if (standard_metadata.instance_type == 0) { resubmit_preserving_field_list(1); }"
    " if (headers.ipv4.ttl < 2) {",
)
ROUND = "if (standard_metadata.egress_port == CPU_PORT) {\n            headers.packet_in.setValid"
RECIRCULATES = (
    ROUND,
    "if (standard_metadata.instance_type == 0) { recirculate_preserving_field_list(0); } " + ROUND,
)
REASONS = {
    "clones": (
        CLONES,
        "the program may clone packets (which go nowhere: no switch has a clone session)",
    ),
    "resubmits": (RESUBMITS, "the program may resubmit packets"),
}


def changed(folder: Path, old: str, new: str, policy: str = "ofan") -> SwitchProgram:
    """Return ofan.p4 with its includes in line and something replaced."""
    text = (p4src.FOLDER / f"{policy}.p4").read_text()
    for name in ("switch.p4",):
        text = text.replace(f'#include "include/{name}"', (p4src.INCLUDE / name).read_text())
    text = text.replace("include/", "")
    assert old in text
    path = folder / "changed.p4"
    path.write_text(text.replace(old, new))
    return load_program(path, Size(2))


FAILING = Failures(
    events=(FailureEvent(link="agg0_0-core0_0", down_ns=1500, up_ns=9000),), convergence_rtt=2
)
SETTINGS: dict[str, dict[str, Any]] = {
    "failures": {"failures": FAILING},
    "drops": {
        "policy": "jsq",
        "collective": ALL_TO_ALL,
        "fabric": Fabric(k=4, queue_bytes=10_000),
        "transport": Transport(recovery="sack"),
    },
    "trimming": {
        "policy": "jsq",
        "collective": ALL_TO_ALL,
        "fabric": Fabric(k=4, queue_bytes=10_000),
        "transport": Transport(recovery="sack", trimming=True),
    },
    "pauses": {
        "policy": "jsq",
        "collective": ALL_TO_ALL,
        "fabric": Fabric(k=4, queue_bytes=125_000, flow_control="pfc"),
    },
    "shared memory": {
        "policy": "jsq",
        "collective": ALL_TO_ALL,
        "fabric": Fabric(k=4, queue_bytes=8_400, buffer="shared"),
    },
}


@pytest.mark.parametrize("name", SETTINGS)
def test_programs_in_python_have_the_same_events(name: str) -> None:
    settings = {"fabric": Fabric(k=4), "collective": MESSAGE, "seed": 3, **SETTINGS[name]}
    scenario = Scenario(**settings)
    fabric = VirtualFabric(scenario, is_interpreted=True)
    outcome = fabric.run()
    assert_same(outcome, PythonFabric(scenario).run())
    counts = {
        "failures": outcome.accounts.lost,
        "drops": outcome.accounts.dropped,
        "trimming": sum(port.trimmed for port in outcome.ports),
        "pauses": sum(port.pauses for port in outcome.ports),
        "shared memory": outcome.accounts.dropped,
    }
    assert counts[name] > 0
    machine = fabric.timed._machine
    assert isinstance(machine, InterpretedMachine)
    # Of packets that egress has not seen nothing is kept.
    assert not machine._states or scenario.transport.trimming


@pytest.mark.parametrize("name", REASONS)
def test_programs_that_ask_for_more_run_in_python(tmp_path: Path, name: str) -> None:
    change, reason = REASONS[name]
    program = changed(tmp_path, *change)
    scenario = SMALL.model_copy(update={"fabric": Fabric(k=4), "failures": FAILING})
    fabric = VirtualFabric(scenario, program)
    assert fabric.why_python == only_python(scenario, program) == reason
    outcome = fabric.run()
    assert_same(outcome, PythonFabric(scenario, program).run())
    # No switch has a clone session; a second pass turns pointers twice.
    assert (outcome.flows == VirtualFabric(scenario).run().flows) is (name == "clones")


def test_the_simulator_runs_them_too(tmp_path: Path) -> None:
    text = (ROOT / "experiments/gallery/weighted_round_robin.p4").read_text()
    results = []
    for name, call in (("plain", ""), ("cloning", "clone(CloneType.I2E, 5);")):
        file = tmp_path / f"{name}.p4"
        file.write_text(text.replace("    apply {\n", f"    apply {{\n        {call}\n"))
        scenario = Scenario(
            policy="simple_rr", program=str(file), collective=MESSAGE, fabric=Fabric(k=4),
            failures=FAILING,
        )  # fmt: skip
        results.append(simulated.run(scenario))

    assert bool(only_python(scenario, simulated.program_of(scenario)))
    plain, cloning = results
    assert cloning.done_ps.tolist() == plain.done_ps.tolist()
    assert (cloning.ports.bytes == plain.ports.bytes).all()


@pytest.mark.parametrize("more", [16, 17])
def test_bytes_that_no_host_writes_are_not_read_as_zeros(tmp_path: Path, more: int) -> None:
    text = (ROOT / "experiments/gallery/weighted_round_robin.p4").read_text()
    file = tmp_path / "deep.p4"
    header = f"header deep_t {{ bit<{8 * more}> all; }}\n#define AFTER_UDP deep_t\n"
    file.write_text(header + text)
    # 14, 20 and 8 bytes are in front; the 59th of an ACK is the first of its ICRC.
    scenario = SMALL.model_copy(update={"program": str(file), "policy": "simple_rr"})
    program = simulated.program_of(scenario)
    fabric = VirtualFabric(scenario.model_copy(update={"program": None}), program)
    # Behind an outer header all frames would be longer: machine code would have to ask each.
    assert "more than the first 58 bytes" in fabric.why_python
    if more > 16:
        with pytest.raises(ProgramError, match="looks at 59 bytes of a frame"):
            fabric.run()
    else:
        assert fabric.run().accounts.unaccounted == 0


@pytest.mark.parametrize("recovery", ["go_back_n", "sack"])
@pytest.mark.parametrize("kind", [0, 1], ids=["data", "ACK"])
def test_payloads_are_zeros_and_bitmaps_are_unknown(recovery: Any, kind: int) -> None:
    scenario = SMALL.model_copy(update={"transport": Transport(recovery=recovery)})
    written, forms = HostBytes(scenario, 0), scenario_packets(scenario).forms
    frame = bytes(write(forms[kind], {}, bitmap=bytes(8 * kind)))
    last = len(frame) - forms.data.hidden if kind == 0 or recovery == "go_back_n" else 58
    assert written.headers == 58
    written.check(frame, (frame, last), 0)
    written.check(frame, (frame, last - 4), 4)
    with pytest.raises(ProgramError, match="stand bitmaps and ICRCs"):
        written.check(frame, (frame, last + 1), 0)
    with pytest.raises(ProgramError, match="stand bitmaps and ICRCs"):
        written.check(frame, (frame, last - 3), 4)


@pytest.mark.parametrize(
    "verdict", ["mark_to_drop(standard_metadata);", "standard_metadata.egress_spec = 300;"]
)
def test_packets_that_programs_drop_leave_nothing(tmp_path: Path, verdict: str) -> None:
    queued = "enqueue.apply(meta, standard_metadata);"
    dropped = f"{queued} if (headers.ipv4.ttl == 62) {{ {verdict} }}"
    program = changed(tmp_path, queued, dropped)
    fabric = VirtualFabric(SMALL, program, is_interpreted=True)
    with pytest.raises(FailedRunError, match="2 flows are not complete"):
        fabric.run(horizon_ps=30_000_000)

    machine = fabric.timed._machine
    assert isinstance(machine, InterpretedMachine)
    # At most the packets that wait at ports.
    assert next(machine._numbers) > 30 > len(machine._states)


def test_recirculation_is_refused_when_it_happens(tmp_path: Path) -> None:
    program = changed(tmp_path, *RECIRCULATES)
    with pytest.raises(ProgramError, match="the program recirculates a packet"):
        VirtualFabric(SMALL, program).run()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_behind_compiled_code_comes_through(error: type[BaseException]) -> None:
    fabric = VirtualFabric(SMALL, is_interpreted=True)

    def fails(*_arguments: object) -> object:
        raise error

    for switch in fabric.switches:
        assert switch.pipeline is not None
        switch.pipeline.ingress = fails
    with pytest.raises(error):
        fabric.run()


def test_a_packet_at_the_wrong_host_ends_the_run(tmp_path: Path) -> None:
    wrong = changed(
        tmp_path,
        NORTHBOUND,
        "if (headers.ipv4.ttl == 63) {"
        " headers.ipv4.destination = headers.ipv4.destination ^ 0x00010000; } " + NORTHBOUND,
    )
    with pytest.raises(ProgramError, match="a frame that is not its own"):
        VirtualFabric(SMALL, wrong).run()


def test_a_run_that_cannot_end_says_which_flows_are_not_complete() -> None:
    with pytest.raises(EmulationError, match=r"at 1\.000 µs, 2 flows are not complete: h0_0_0 to"):
        VirtualFabric(SMALL).run(horizon_ps=1_000_000)
