"""Installation of plans: on switches of this process, and on processes behind gRPC."""

import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.scale.planning import Row, failures_of, program_for, scenario, timed
from controller.fabric_controller import FabricController, LinkChange, Step
from controller.fleet import Access, Fleet
from controller.grpc_transport import GrpcTransport
from controller.session import InProcess, Session
from emulation.mininet.children import SOFTSWITCH_PROGRAM, children
from emulation.mininet.switch_processes import listens
from emulation.programs.switch_program import SwitchProgram
from fattree.experiment.model import Scenario
from fattree.shape.addressing import device_id, switch_name
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError

START_SECONDS = 120.0


def installing_in_process(k: int) -> Row:
    """Install on switches of this process, one after the other, by P4Runtime's messages."""
    chosen = scenario(k)
    program = program_for(chosen)
    controller = FabricController(chosen, program_for(chosen).pipeline)
    sessions = [_session(number, program) for number in range(chosen.tree.switches)]

    def push() -> None:
        for session in sessions:
            session.push(program.bmv2_json)

    push_s, _ = timed(push, time.perf_counter)

    def write(steps: Sequence[Step]) -> None:
        for step in steps:
            sessions[step.switch].write(step.changes)

    row = {"how": "in process", "switches": chosen.tree.switches, "push_s": push_s}
    return row | installed(controller, write, time.process_time)


def _session(number: int, program: SwitchProgram) -> Session:
    switch = Switch(device_id(number), lambda: 0, lambda low, _high: low, ())
    session = Session(
        InProcess(P4RuntimeService(switch), StatusError), program.pipeline, device_id(number)
    )
    session.open()

    return session


def installing_over_grpc(k: int) -> Row:
    """Install on switch processes, side by side, over gRPC."""
    chosen = scenario(k)
    program = program_for(chosen)
    controller = FabricController(chosen, program_for(chosen).pipeline)
    started = time.perf_counter()

    with switch_processes(chosen) as (connect, pids):
        start_s = time.perf_counter() - started
        fleet = Fleet(controller, Access(program.bmv2_json, program.pipeline, connect))
        try:
            push_s, _ = timed(fleet.open, time.perf_counter)
            row = {
                "how": "gRPC",
                "switches": chosen.tree.switches,
                "start_s": start_s,
                "push_s": push_s,
            }

            row |= installed(
                controller,
                fleet.write,
                lambda: time.process_time() + sum(map(process_seconds, pids)),
            )
        finally:
            fleet.close()

    if fleet.lost:
        raise SystemExit(f"switches were lost: {next(iter(fleet.lost.values()))}")

    return row


@contextmanager
def switch_processes(
    chosen: Scenario,
) -> Iterator[tuple[Callable[[int], GrpcTransport], Collection[int]]]:
    """Run a fabric's switches as processes without ports.

    Yield what connects to them, and their ids.

    All end with the context and leave nothing behind.
    """
    names = [switch_name(chosen.tree, switch) for switch in range(chosen.tree.switches)]
    with tempfile.TemporaryDirectory(prefix="ofan-") as folder, children() as processes:
        for number, name in enumerate(names):
            argv = [
                SOFTSWITCH_PROGRAM,
                "--no-p4",
                "--device-id",
                str(device_id(number)),
                "--",
                "--grpc-server-addr",
                f"unix:{folder}/{name}",
            ]

            processes.start(name, argv, Path(folder, f"{name}.log"))

        processes.await_all(lambda name: listens(Path(folder, name)), START_SECONDS)
        yield (
            lambda switch: GrpcTransport(f"unix:{folder}/{names[switch]}"),
            processes.pids.values(),
        )


def installed(
    controller: FabricController,
    write: Callable[[Sequence[Step]], object],
    cpu_s: Callable[[], float],
) -> Row:
    """Install the first plan, then the changes for a failed core link and for its repair.

    `cpu_s` tells the CPU time of all.
    """
    row: Row = {}
    link = failures_of(controller.scenario)["core"]
    moves = {
        "first": controller.start,
        "failure": lambda: controller.on_event(0, LinkChange(down=frozenset({link}))),
        "repair": lambda: controller.on_event(0, LinkChange(up=frozenset({link}))),
    }

    for name, move in moves.items():
        plan_s, steps = timed(move, time.perf_counter)
        before_s = cpu_s()
        install_s, _ = timed(lambda steps=steps: write(steps), time.perf_counter)  # type: ignore[misc]
        row |= {
            f"{name}_plan_s": plan_s,
            f"{name}_s": install_s,
            f"{name}_cpu_s": cpu_s() - before_s,
        }
        row[f"{name}_updates"] = sum(len(step.changes) for step in steps)

    return row


def process_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
