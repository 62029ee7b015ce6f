"""Which engine runs a scenario, why, and its errors for programs that do forbidden things."""

from pathlib import Path

import pytest

import p4src
from emulation.errors import EmulationError, ProgramError, UnsupportedError
from emulation.programs.switch_program import Size, load_program
from emulation.virtual import engine
from emulation.virtual.engine import fabric
from emulation.virtual.fabric import VirtualFabric
from emulation.virtual.native import NativeFabric
from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    Scenario,
)
from fattree.routes.demand import Demand

SMALL = Scenario(fabric=Fabric(k=2), collective=Collective(message_bytes=8 * 4096))
CLONES = ("if (is_northbound) {", "if (is_northbound) { clone(CloneType.I2E, 5);")


def changed(folder: Path, old: str, new: str) -> Path:
    """Write ofan.p4 with its includes in line and something replaced."""
    text = (p4src.FOLDER / "ofan.p4").read_text()
    for name in ("switch.p4",):
        text = text.replace(f'#include "include/{name}"', (p4src.INCLUDE / name).read_text())
    text = text.replace("include/", "")
    assert old in text
    path = folder / "changed.p4"
    path.write_text(text.replace(old, new))
    return path


def test_machine_code_is_the_default_where_kernels_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "are_compiled", lambda: True)
    assert isinstance(fabric(SMALL), NativeFabric)
    python = fabric(SMALL, engine="python")
    assert isinstance(python, VirtualFabric)
    assert all(switch.pipeline and not switch.pipeline.native for switch in python.switches)
    monkeypatch.setattr(engine, "are_compiled", lambda: False)
    assert isinstance(fabric(SMALL), VirtualFabric)
    assert isinstance(fabric(SMALL, engine="native"), NativeFabric)
    monkeypatch.setattr(engine, "FEW_HOPS", 1)
    assert isinstance(fabric(SMALL), NativeFabric)


def test_a_run_that_may_be_given_up_at_the_horizon_is_a_long_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "are_compiled", lambda: False)
    small = SMALL.model_copy(update={"fabric": Fabric(k=4)})
    monkeypatch.setattr(engine, "FEW_HOPS", 50 * engine._hops(Demand.of(small)))
    dead = FailureEvent(link="agg0_0-core0_0", down_ns=100)
    for rtt, kind in ((2.0, VirtualFabric), (float("inf"), NativeFabric)):
        failures = Failures(events=(dead,), convergence_rtt=rtt)
        scenario = small.model_copy(update={"failures": failures})
        assert isinstance(fabric(scenario), kind)


def test_what_only_python_can_run_is_said_in_a_line(tmp_path: Path) -> None:
    cloning = changed(tmp_path, *CLONES)
    program = load_program(cloning, Size(1))
    said: list[str] = []
    assert isinstance(fabric(SMALL, program, say=said.append), VirtualFabric)
    assert said == ["on the Python engine: the program may clone packets"]
    with pytest.raises(UnsupportedError, match="--engine native: the program may clone packets"):
        fabric(SMALL, program, engine="native")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (*CLONES, "the program may clone packets"),
        (
            "if (headers.inner_ipv4.isValid()) {",
            "if (headers.ipv4.ttl == 77) { resubmit_preserving_field_list(1); }"
            " if (headers.inner_ipv4.isValid()) {",
            "the program may resubmit packets",
        ),
    ],
)
def test_programs_that_ask_for_more_run_on_python(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    program = load_program(changed(tmp_path, old, new), Size(1))
    assert reason in engine.only_python(SMALL, program)


def test_a_packet_at_the_wrong_host_ends_the_run(tmp_path: Path) -> None:
    wrong = changed(
        tmp_path,
        "if (is_northbound) {",
        "if (headers.ipv4.ttl == 63) {"
        " headers.ipv4.destination = headers.ipv4.destination ^ 0x00010000; }"
        " if (is_northbound) {",
    )
    program = load_program(wrong, Size(1))
    with pytest.raises(ProgramError, match="a frame that is not its own"):
        fabric(SMALL, program, engine="native").run()


def test_a_run_that_cannot_end_says_which_flows_are_not_complete() -> None:
    with pytest.raises(EmulationError, match=r"at 1\.000 µs, 2 flows are not complete: h0_0_0 to"):
        fabric(SMALL, engine="native").run(horizon_ps=1_000_000)
