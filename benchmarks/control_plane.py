"""The control plane at scale: plans, entries per switch, installation, what traffic notices.

.venv/bin/python benchmarks/control_plane.py [--quick] [--json] [--figure FILE]

Each k is planned in a process of its own, so that its memory is its own. Switches are in this
process, then processes behind gRPC on Unix sockets, which end with this one; packets are counted in
virtual time and, with root and Mininet, on veths.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from controller.fabric_controller import FabricController, LinkChange, Step
from controller.fleet import Access, Fleet
from controller.grpc_transport import GrpcTransport
from controller.session import InProcess, Session
from emulation.errors import EmulationError
from emulation.mininet.building import mininet_fabric
from emulation.mininet.children import SOFTSWITCH_PROGRAM, children
from emulation.mininet.run import run_on
from emulation.mininet.switch_processes import listens
from emulation.programs.switch_program import SwitchProgram, built_in, size_of
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario
from fattree.routes.forwarding import Forwarding
from fattree.routes.groups import NONE
from fattree.shape.addressing import device_id, switch_name
from fattree.texts.looks import GRID, SLATES
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError
from ofan_p4.softswitch.switch import Switch

Answer = TypeVar("Answer")
Row = dict[str, Any]
SIZES = (8, 16, 32, 64)
QUICK_SIZES = (8, 16)
START_SECONDS = 120.0
MB = 1 << 10
CORE_LINK = "agg0_0-core0_0"


def scenario(k: int, **settings: Any) -> Scenario:
    """Return Ofan's scenario on a fabric."""
    return Scenario(policy="ofan", fabric=Fabric(k=k), **settings)


def program_for(chosen: Scenario) -> SwitchProgram:
    """Return the program for switches of this size."""
    return built_in(chosen.scheme.program, size_of(chosen.tree))


def timed(
    action: Callable[[], Answer], clock: Callable[[], float] = time.process_time
) -> tuple[float, Answer]:
    """Return how long an action took, and its answer."""
    started = clock()
    answer = action()
    return clock() - started, answer


def walk(steps: Iterable[Step]) -> int:
    """Make every change, as sessions do when they send it; return how many there were."""
    return sum(1 for step in steps for _ in step.changes)


def peak_mb() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // MB


def failures_of(chosen: Scenario) -> dict[str, int]:
    """Return one link of each kind: the last ones, which no code treats specially."""
    return {"edge": chosen.tree.links // 2 - 1, "core": chosen.tree.links - 1}


def planning(k: int) -> Row:
    """Plan a fabric, fail a link of each kind, mend it, and count everything."""
    chosen = scenario(k)
    controller = FabricController(chosen, program_for(chosen).pipeline)
    plan_s, steps = timed(controller.start)
    made_s, entries = timed(lambda: walk(steps))
    row: Row = {
        "k": k,
        "switches": chosen.tree.switches,
        "plan_cpu_s": plan_s,
        "entries": entries,
        "made_cpu_s": made_s,
    }

    row |= {"plan_mb": peak_mb(), **shape(controller.forwarding())}
    steps = []
    for kind, link in failures_of(chosen).items():
        row |= {f"{kind}_{name}": value for name, value in replanning(controller, link).items()}

    return row | {"peak_mb": peak_mb()}


def replanning(controller: FabricController, link: int) -> Row:
    """Fail a link and mend it again."""
    replan_s, steps = timed(lambda: controller.on_event(0, LinkChange(down=frozenset({link}))))
    made_s, updates = timed(lambda: walk(steps))
    per_switch: Counter[int] = Counter()

    for step in steps:
        per_switch[step.switch] += len(step.changes)

    longest = int(np.diff(controller.forwarding().schedule_offset).max())
    repair_s, _ = timed(lambda: controller.on_event(0, LinkChange(up=frozenset({link}))))
    return {
        "replan_cpu_s": replan_s,
        "made_cpu_s": made_s,
        "updates": updates,
        "switches_told": len(per_switch),
        "most_updates": max(per_switch.values()),
        "median_updates": int(np.median(list(per_switch.values()))),
        "longest_schedule": longest,
        "repair_cpu_s": repair_s,
    }


def shape(state: Forwarding) -> Row:
    """Count what an edge and an agg hold, and an edge whose pointers share no schedules."""
    edges = state.tree.edges
    lengths = np.diff(state.schedule_offset)
    own = slice(*state.first_schedule[:2].tolist())
    groups = state.group_schedule[slice(*state.first_group[:2].tolist())]
    used = groups[state.edge_group[0][state.edge_group[0] != NONE]]
    row: Row = {
        f"{name}_pointers": int((groups != NONE).sum()) for name, groups in of_tiers(state).items()
    }
    row |= {"edge_schedules": int((lengths[own] > 0).sum()), "edge_rows": int(lengths[own].sum())}
    row["edge_rows_unshared"] = int(lengths[own][used].sum())
    agg = slice(*state.first_schedule[edges : edges + 2].tolist())

    return row | {
        "agg_rows": int(lengths[agg].sum()),
        "saving": row["edge_rows_unshared"] / row["edge_rows"],
    }


def of_tiers(state: Forwarding) -> dict[str, Any]:
    """Return the groups of the first edge's and the first agg's destinations.

    Each has a pointer per packet class.
    """
    return {"edge": state.edge_group[0], "agg": state.agg_group[0]}


def in_own_process(k: int) -> Row:
    """Plan one size in a fresh process."""
    command = [sys.executable, __file__, "--plan", str(k)]
    row: Row = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return row


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
    """Install the first plan, then what a failed core link and its repair change.

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


def interruptions() -> Iterator[Row]:
    """Count the packets that a core link's failure and its return cost in virtual time, by G."""
    for rtts in (0, 0.5, 1, 2):
        lost, unrouted, sent = _virtual(
            Failures(events=(FailureEvent(link=CORE_LINK, down_ns=5_000),), convergence_rtt=rtts)
        )
        yield {
            "what": f"virtual: a core link fails, G = {rtts:g} RTT",
            "lost": lost,
            "unrouted": unrouted,
            "sent": sent,
        }

    comes_back = Failures(events=(FailureEvent(link=CORE_LINK, down_ns=0, up_ns=5_000),))
    lost, unrouted, sent = _virtual(comes_back)
    yield {
        "what": "virtual: it comes back under load",
        "lost": lost,
        "unrouted": unrouted,
        "sent": sent,
    }


def _virtual(failures: Failures) -> tuple[int, int, int]:
    accounts = VirtualFabric(scenario(4, failures=failures)).run().accounts
    return accounts.lost, accounts.unrouted, accounts.sent


def real_interruption() -> Row:
    """Fail a core link on Mininet with G = 0; raises EmulationError where there is no Mininet."""
    failures = Failures(events=(FailureEvent(link=CORE_LINK, down_ns=1e9),))
    slow = Fabric(k=4, rate_gbps=0.001, latency_ns=10e6)
    chosen = Scenario(
        policy="ofan", fabric=slow, collective=Collective(message_bytes=1 << 18), failures=failures
    )

    with mininet_fabric(chosen) as fabric:
        outcome = run_on(fabric)
        took_ms = (fabric.installations[0].took_ps or 0) / 10**9

    accounts = outcome.accounts
    what = (
        f"Mininet (30 packets/s a host): {CORE_LINK} fails, G = 0, installed {took_ms:.0f} ms after"
    )
    return {
        "what": what,
        "lost": accounts.lost,
        "unrouted": accounts.unrouted,
        "sent": accounts.sent,
    }


PLAN_COLUMNS = {
    "k": "k",
    "switches": "switches",
    "entries": "entries",
    "plan_cpu_s": "plan (CPU s)",
    "made_cpu_s": "all entries made (CPU s)",
    "core_replan_cpu_s": "core link fails: re-plan (CPU s)",
    "core_updates": "updates",
    "core_switches_told": "switches",
    "core_median_updates": "median",
    "core_most_updates": "most",
    "core_longest_schedule": "longest schedule",
    "core_made_cpu_s": "updates made (CPU s)",
    "core_repair_cpu_s": "repair (CPU s)",
    "peak_mb": "memory (MB)",
}
SHAPE_COLUMNS = {
    "k": "k",
    "edge_pointers": "pointers of an edge",
    "agg_pointers": "of an agg",
    "edge_schedules": "schedules of an edge",
    "edge_rows": "their rows",
    "edge_rows_unshared": "rows unshared",
    "saving": "saving",
    "agg_rows": "rows of an agg",
    "edge_replan_cpu_s": "edge link fails: re-plan (CPU s)",
    "edge_updates": "updates",
    "edge_most_updates": "most on a switch",
}
INSTALL_COLUMNS = {
    "how": "switches",
    "switches": "number",
    "start_s": "start (s)",
    "push_s": "program (s)",
    "first_updates": "entries",
    "first_s": "first plan (s)",
    "first_cpu_s": "CPU (s)",
    "failure_updates": "updates",
    "failure_s": "core link fails (s)",
    "failure_cpu_s": "CPU (s)",
    "repair_s": "repair (s)",
    "repair_cpu_s": "CPU (s)",
}
PACKET_COLUMNS = {
    "what": "what happens",
    "sent": "packets sent",
    "lost": "lost on the link",
    "unrouted": "without a route",
}


def table(title: str, columns: dict[str, str], rows: Sequence[Row]) -> Table:
    """Return rows as a table."""
    shown = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for heading in columns.values():
        shown.add_column(heading, justify="right")

    for row in rows:
        shown.add_row(*(_cell(row.get(name)) for name in columns))

    return shown


def _cell(value: Any) -> str:
    if value is None:
        return "-"

    return (
        f"{value:,.2f}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def draw(rows: Sequence[Row], file: Path) -> None:
    """Draw CPU time and sizes over the number of switches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    times, sizes = figure.subplots(1, 2)
    switches = [row["switches"] for row in rows]
    lines = {
        times: {
            "plan_cpu_s": "first plan",
            "made_cpu_s": "all its entries made",
            "core_replan_cpu_s": "re-plan, a core link fails",
            "core_made_cpu_s": "its updates made",
        },
        sizes: {
            "entries": "entries of the fabric",
            "core_updates": "updates, a core link fails",
            "edge_rows_unshared": "schedule rows of an edge, unshared",
            "edge_rows": "the same, shared",
        },
    }

    styles = ("o-", "o--", "s-", "s--")

    for axes, chosen in lines.items():
        for (name, label), style, colour in zip(chosen.items(), styles, SLATES, strict=False):
            axes.loglog(
                switches,
                [row[name] for row in rows],
                style,
                color=colour,
                label=label,
                markersize=4,
            )

        axes.set_xticks(switches, [f"{row['switches']:,}\nk = {row['k']}" for row in rows])
        axes.minorticks_off()
        axes.set_xlabel("switches")
        axes.grid(color=GRID, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=8, frameon=False)

    times.set_ylabel("CPU time (s)")
    sizes.set_ylabel("number")
    figure.savefig(file, dpi=150)


def measure(quick: bool, say: Callable[[str], object]) -> dict[str, list[Row]]:
    """Measure everything."""
    found: dict[str, list[Row]] = {"plans": [], "installations": [], "packets": []}
    for k in QUICK_SIZES if quick else SIZES:
        say(f"planning k = {k} ...")
        found["plans"].append(in_own_process(k))

    for k in (4,) if quick else (4, 8):
        say(f"installing on {scenario(k).tree.switches} switches ...")
        found["installations"] += [installing_in_process(k), installing_over_grpc(k)]

    say("counting packets ...")
    found["packets"] += interruptions()
    try:
        found["packets"] += [] if quick else [real_interruption()]
    except EmulationError as error:
        say(f"Mininet is left out: {error}")

    return found


def main() -> None:
    """Measure, then print tables or JSON."""
    options = argparse.ArgumentParser(description="Scale of the control plane.")
    options.add_argument(
        "--quick", action="store_true", help="up to k = 16, 20 switches, no Mininet"
    )
    options.add_argument("--json", action="store_true", help="print JSON")
    options.add_argument("--figure", type=Path, help="write a picture of the plans")
    options.add_argument("--plan", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()

    if chosen.plan:
        print(json.dumps(planning(chosen.plan)))
        return

    found = measure(chosen.quick, lambda line: print(line, file=sys.stderr))
    if chosen.figure:
        draw(found["plans"], chosen.figure)

    if chosen.json:
        print(json.dumps(found, indent=2))
        return

    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(f"{os.cpu_count()} cores; CPU seconds for plans, seconds for installation\n")
    tables = (("Plans", PLAN_COLUMNS, "plans"), ("What a switch holds", SHAPE_COLUMNS, "plans"))

    for title, columns, name in (
        *tables,
        ("Installation", INSTALL_COLUMNS, "installations"),
        ("Packets", PACKET_COLUMNS, "packets"),
    ):
        console.print(table(title, columns, found[name]), "")


if __name__ == "__main__":
    main()
