"""What faults cost on Mininet (root) and in virtual time: packets lost, time to recover.

    sudo .venv/bin/python benchmarks/faults.py --runs 10 --update docs/faults.md
    sudo .venv/bin/python benchmarks/faults.py --runs 1 --only probe

`detect`, `plan` and `install` are the stages of a convergence: from the fault until the controller
knows, until it has its plan, and until the last switch has acknowledged. `recover` is all of it.
`lost` are packets sent and never received.
"""

import json
import os
import platform
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click
import numpy as np

from controller.convergence import Convergence
from controller.fabric_controller import FabricController, LinkChange
from controller.fleet import Fleet
from emulation.errors import EmulationError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.run import Run
from emulation.outcomes.outcome import Outcome
from emulation.virtual.fabric import VirtualFabric
from fattree.demand import traffic
from fattree.experiment.model import (
    Collective,
    Controller,
    Fabric,
    FailureEvent,
    Failures,
    Scenario,
)
from fattree.routes.failures import cut_off
from fattree.routes.wecmp import LinkState
from fattree.shape.addressing import link_name, link_named, switch_named
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_MS

FAULT_MS = 400
ATTEMPTS = 3
PATIENCE_S = 60
CORE_LINK = "agg0_0-core0_0"
EDGE_LINK = "edge0_0-agg0_1"
COLUMNS = (
    "fault",
    "how injected",
    "detection",
    "packets lost",
    "time to recover (ms)",
    "detect / plan / install (ms)",
)
BEGIN = "<!-- begin: benchmarks/faults.py -->"
END = "<!-- end: benchmarks/faults.py -->"


class Sample(NamedTuple):
    """What one run has shown; times in milliseconds."""

    lost: float
    recover: float
    detect: float | None = None
    plan: float | None = None
    install: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, how it is made, which network meets it, and what measures one run."""

    fault: str
    injected: str
    controller: Controller
    measure: Callable[[MininetFabric], Sample]
    packets: int = 45

    @property
    def mode(self) -> str:
        """Return the column that says how failures are detected."""
        interval_us = self.controller.probe_interval_us
        detection = self.controller.detection
        damped = ", damped" if self.controller.damping_half_life_us else ""

        return f"{detection} ({interval_us / 1000:g} ms x 3)" if interval_us else detection + damped


def scenario(case: Case) -> Scenario:
    """Return k = 4 with Ofan, 49 packets a second and host: software switches keep up with that."""
    return Scenario(
        policy="ofan",
        fabric=Fabric(k=4, rate_gbps=0.0016, latency_ns=6e6),
        collective=Collective(message_bytes=case.packets * 4096),
        controller=case.controller,
    )


def serve(fabric: MininetFabric, is_over: Callable[[], object]) -> None:
    """Serve the network until something is true."""
    limit = time.monotonic() + PATIENCE_S

    def over() -> bool:
        if time.monotonic() > limit:
            raise EmulationError("it never happened")

        fabric.tend()
        return bool(is_over())

    fabric.loop.run(over)


def disturbed(fabric: MininetFabric, *events: tuple[float, Callable[[], object]]) -> Outcome:
    """Run the traffic, with things that happen at (milliseconds, action)."""
    run = Run(fabric, fabric.scenario)
    run.start(with_events=False)
    for at_ms, action in events:
        fabric.call_at(round(at_ms * PS_PER_MS), action)

    fabric.loop.run(lambda: run.is_over)
    return run.outcome()


def lost(outcome: Outcome) -> int:
    """Return how many packets were sent and never received."""
    return outcome.accounts.sent - outcome.accounts.received


def links(fabric: MininetFabric, *names: str) -> frozenset[int]:
    """Return the indices of links."""
    return frozenset(link_named(fabric.tree, name) for name in names)


def stages(found: Convergence, lost_packets: int) -> Sample:
    """Return the stages of a convergence."""
    marks = (found.at_ps, found.detected_ps, found.planned_ps or 0, found.installed_ps or 0)
    detect, plan, install = ((after - before) / PS_PER_MS for before, after in pairwise(marks))
    return Sample(
        lost_packets,
        recover=(marks[-1] - marks[0]) / PS_PER_MS,
        detect=detect,
        plan=plan,
        install=install,
    )


def quiet(fabric: MininetFabric) -> None:
    """Wait until all links are used again."""
    serve(
        fabric,
        lambda: (
            not fabric.routed
            and not fabric.fleet.lost
            and fabric.controller.next_release_ps is None
        ),
    )


def link_fails(name: str, fabric: MininetFabric) -> Sample:
    """Break a link in the middle of the traffic."""
    quiet(fabric)
    fabric.installations.clear()
    link = links(fabric, name)
    outcome = disturbed(fabric, (FAULT_MS, partial(fabric.change_links, LinkChange(down=link))))
    serve(fabric, lambda: link <= fabric.routed)
    found = next(found for found in fabric.installations if link <= found.change.down)
    sample = stages(found, lost(outcome))
    fabric.change_links(LinkChange(up=link))

    return sample


def links_fail(names: tuple[str, ...], fabric: MininetFabric) -> Sample:
    """Break links one after the other within a second."""
    quiet(fabric)
    fabric.installations.clear()
    gap_ms = 1000 / len(names)
    all_links = links(fabric, *names)
    events = [
        (200 + gap_ms * n, partial(fabric.change_links, LinkChange(down=links(fabric, name))))
        for n, name in enumerate(names)
    ]

    outcome = disturbed(fabric, *events)
    serve(fabric, lambda: fabric.routed == all_links)
    fabric.change_links(LinkChange(up=all_links))
    last = next(found for found in fabric.installations if found.failed == all_links)

    return Sample(lost(outcome), ((last.installed_ps or 0) - last.at_ps) / PS_PER_MS)


def link_flaps(fabric: MininetFabric) -> Sample:
    """Let a link flap at 10 Hz for a second; it has recovered when it is used again."""
    quiet(fabric)
    fabric.installations.clear()
    link = links(fabric, CORE_LINK)
    times = [
        (FAULT_MS + 50 * n, LinkChange(up=link) if n % 2 else LinkChange(down=link))
        for n in range(20)
    ]
    outcome = disturbed(
        fabric, *((at_ms, partial(fabric.change_links, change)) for at_ms, change in times)
    )
    quiet(fabric)
    last_ms = [(found.installed_ps or 0) / PS_PER_MS for found in fabric.installations]

    return Sample(lost(outcome), max(0, max(last_ms, default=0) - times[-1][0]))


def switch_dies(fabric: MininetFabric) -> Sample:
    """Kill a core switch in the middle of the traffic.

    It has recovered when it holds its plan and is used again.
    """
    fabric.switches.may_restart = True
    quiet(fabric)
    fabric.installations.clear()
    victim = switch_named(fabric.tree, "core0_0")
    marks: list[float] = []
    fabric.on_news = lambda line: marks.append(time.monotonic()) if "is back" in line else None

    def kill() -> None:
        marks.append(time.monotonic())
        os.kill(fabric.switches.processes.pids["core0_0"], signal.SIGKILL)

    outcome = disturbed(fabric, (FAULT_MS, kill))
    serve(fabric, lambda: len(marks) > 1)
    quiet(fabric)
    assert dict(fabric.entries(victim)) == dict(fabric.controller.entries(victim))
    avoided = [found for found in fabric.installations if found.change.down]
    first = (
        (avoided[0].installed_ps or 0) / PS_PER_MS - FAULT_MS
        if avoided
        else (marks[1] - marks[0]) * 1000
    )

    return Sample(lost(outcome), first)


def controller_dies(fabric: MininetFabric) -> Sample:
    """Forget the controller in the middle of the traffic; the next one reads all switches back."""
    took: list[float] = []

    def restart() -> None:
        started = time.monotonic()
        fabric.restart_controller()
        took.append((time.monotonic() - started) * 1000)

    outcome = disturbed(fabric, (FAULT_MS, restart))
    return Sample(lost(outcome), took[0])


def connection_is_cut(fabric: MininetFabric) -> Sample:
    """Cut the session with one switch for 500 ms, and break one of its links meanwhile."""
    quiet(fabric)
    victim = switch_named(fabric.tree, "agg0_0")
    link = links(fabric, CORE_LINK)
    whole = fabric.fleet.access
    marks: list[float] = []

    def cut() -> None:
        fabric.fleet.access = replace(whole, is_reachable=lambda switch: switch != victim)
        fabric.sessions[victim].close()

    def join() -> None:
        marks.append(time.monotonic())
        fabric.fleet.access = whole

    fabric.on_news = lambda line: (
        marks.append(time.monotonic()) if "agg0_0 is back" in line else None
    )
    broken = partial(fabric.change_links, LinkChange(down=link))
    outcome = disturbed(fabric, (FAULT_MS, cut), (FAULT_MS + 100, broken), (FAULT_MS + 500, join))
    serve(fabric, lambda: len(marks) > 1)
    assert dict(fabric.entries(victim)) == dict(fabric.controller.entries(victim))
    fabric.change_links(LinkChange(up=link))

    return Sample(lost(outcome), (marks[1] - marks[0]) * 1000)


def rival_takes_over(fabric: MininetFabric) -> Sample:
    """Let a second controller take all switches over, and leave.

    The first one must be in charge of all again.
    """
    quiet(fabric)
    rival: list[Fleet] = []
    marks: list[float] = []

    def take_over() -> None:
        election_id = fabric.sessions[0].election_id + 1
        brain = FabricController(fabric.scenario, fabric.access.pipeline, fabric.failed)
        rival.append(Fleet(brain, replace(fabric.access, election_id=election_id)))
        rival[0].open()
        rival[0].write(brain.start())

    def leave() -> None:
        rival[0].close()
        marks.append(time.monotonic())

    outcome = disturbed(fabric, (FAULT_MS, take_over), (FAULT_MS + 400, leave))
    serve(fabric, lambda: marks and not fabric.fleet.lost)
    return Sample(lost(outcome), (time.monotonic() - marks[0]) * 1000)


def agent_dies(fabric: MininetFabric) -> Sample:
    """Kill the agent of the hosts: the run must end and say so; the network is gone afterwards."""
    started: list[float] = []

    def kill() -> None:
        started.append(time.monotonic())
        os.kill(fabric.agents.pids[0], signal.SIGKILL)

    try:
        disturbed(fabric, (FAULT_MS, kill))
    except EmulationError as error:
        assert "was ended by SIGKILL" in str(error)
        return Sample(0, (time.monotonic() - started[0]) * 1000)

    raise EmulationError("nobody noticed")


PROBE = Controller(detection="probe", probe_interval_us=100_000)
ANNOUNCED = Controller()
NETLINK = Controller(detection="netlink")
TEN = (
    *(f"edge{pod}_{edge}-agg{pod}_0" for pod in range(4) for edge in range(2)),
    "agg0_1-core1_0",
    "agg3_1-core1_0",
)
CASES = (
    Case(
        "core link fails",
        "`ip link set down`, both ends",
        ANNOUNCED,
        partial(link_fails, CORE_LINK),
    ),
    Case("core link fails", "the same", NETLINK, partial(link_fails, CORE_LINK)),
    Case("core link fails", "the same", PROBE, partial(link_fails, CORE_LINK)),
    Case("edge link fails", "the same", ANNOUNCED, partial(link_fails, EDGE_LINK)),
    Case("edge link fails", "the same", NETLINK, partial(link_fails, EDGE_LINK)),
    Case("edge link fails", "the same", PROBE, partial(link_fails, EDGE_LINK)),
    Case(
        "10 of 32 links fail within a second",
        injected="the same, every 100 ms",
        controller=NETLINK,
        measure=partial(links_fail, TEN),
        packets=70,
    ),
    Case(
        "core link flaps at 10 Hz for 1 s",
        injected="down and up every 50 ms",
        controller=NETLINK,
        measure=link_flaps,
        packets=80,
    ),
    Case(
        "core link flaps at 10 Hz for 1 s",
        injected="the same",
        controller=Controller(detection="netlink", damping_half_life_us=500_000),
        measure=link_flaps,
        packets=80,
    ),
    Case(
        "core switch killed, restarted",
        injected="SIGKILL; the emulation starts it again",
        controller=ANNOUNCED,
        measure=switch_dies,
        packets=90,
    ),
    Case(
        "core switch killed, restarted",
        injected="the same",
        controller=PROBE,
        measure=switch_dies,
        packets=90,
    ),
    Case(
        "controller killed, restarted",
        "all its state forgotten, sessions dropped",
        ANNOUNCED,
        controller_dies,
    ),
    Case(
        "connection to a switch cut for 500 ms",
        injected="session closed; a link of it fails meanwhile",
        controller=ANNOUNCED,
        measure=connection_is_cut,
        packets=70,
    ),
    Case(
        "second controller takes over, leaves",
        injected="a higher election id for 400 ms",
        controller=ANNOUNCED,
        measure=rival_takes_over,
        packets=70,
    ),
    Case("host agent killed", "SIGKILL; the run ends and names it", ANNOUNCED, agent_dies),
)


@contextmanager
def network(case: Case) -> Iterator[MininetFabric]:
    """Bring up a case's network in a folder of its own, so that it meets no other emulation."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mininet_fabric(scenario(case), Setup(folder=Path(folder) / "ofan")) as fabric,
    ):
        yield fabric


def samples(case: Case, runs: int) -> list[Sample]:
    """Measure a case; an agent's death takes the network with it, all others share one."""
    if case.measure is agent_dies:
        found = []
        for _ in range(runs):
            with network(case) as fabric:
                found.append(case.measure(fabric))

        return found

    with network(case) as fabric:
        return [measured(case, fabric) for _ in range(runs)]


def measured(case: Case, fabric: MininetFabric) -> Sample:
    """Measure once; a run that a busy machine has kept from its end is said and done again."""
    attempts = iter(range(ATTEMPTS))
    while True:
        with suppress(EmulationError) if next(attempts) < ATTEMPTS - 1 else nullcontext():
            return case.measure(fabric)

        click.echo(f"{case.fault}: once more", err=True)


def storm(tree: FatTree, count: int, seed: int) -> tuple[FailureEvent, ...]:
    """Return so many failures within a second that leave every pair of hosts a path."""
    rng = np.random.default_rng(seed)
    everybody = traffic.flows(
        Scenario(fabric=Fabric(k=tree.k), collective=Collective(matrix="all_to_all"))
    )
    while True:
        chosen = rng.choice(tree.links, count, replace=False).tolist()
        if not len(cut_off(tree, LinkState.without(tree, frozenset(chosen)), everybody)):
            times = rng.uniform(0.2e9, 1.2e9, count)
            return tuple(
                FailureEvent(link=link_name(tree, link), down_ns=at)
                for link, at in zip(chosen, times, strict=True)
            )


def virtual_storm(controller: Controller, seed: int) -> Sample:
    """Let 30 of the 256 links of k = 8 fail within a second of virtual time.

    32 flows cross the fabric.
    """
    tree = FatTree(8)
    pairs = tuple((host, (host + 64) % 128) for host in range(0, 128, 4))
    fabric = VirtualFabric(
        Scenario(
            fabric=Fabric(k=8, rate_gbps=0.0016, latency_ns=6e6),
            collective=Collective(matrix="pairs", pairs=pairs, message_bytes=70 * 4096),
            failures=Failures(events=storm(tree, 30, seed)),
            controller=controller,
            seed=seed,
        )
    )

    outcome = fabric.run()
    assert len(fabric.controller.failed) == 30 and outcome.accounts.unaccounted == 0
    waits = [
        ((found.installed_ps or 0) - found.at_ps) / PS_PER_MS for found in fabric.installations
    ]

    return Sample(outcome.accounts.lost, median(waits))


STORMS = (
    ("30 of 256 links fail within a second (k = 8)", "virtual time, G = 0", ANNOUNCED),
    ("30 of 256 links fail within a second (k = 8)", "virtual time", PROBE),
)


def row(fault: str, injected: str, mode: str, found: list[Sample]) -> dict[str, object]:
    """Return the medians of a case, with the range of the time to recover."""
    columns = {name: [getattr(sample, name) for sample in found] for name in Sample._fields}
    medians = {
        name: median(values) if None not in values else None for name, values in columns.items()
    }
    extent = {"least": min(columns["recover"]), "most": max(columns["recover"])}

    return {
        "fault": fault,
        "injected": injected,
        "mode": mode,
        "runs": len(found),
        **medians,
        **extent,
    }


def markdown(rows: list[dict[str, object]]) -> str:
    """Return the table."""
    head = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n"
    return head + "".join(_line(values) for values in rows)


def _line(values: dict[str, object]) -> str:
    split = [values[name] for name in ("detect", "plan", "install")]
    shown = "" if None in split else " / ".join(f"{part:.0f}" for part in split)
    recover = f"{values['recover']:.0f} ({values['least']:.0f} to {values['most']:.0f})"

    case = f"{values['fault']} | {values['injected']} | {values['mode']}"
    return f"| {case} | {values['lost']:.0f} | {recover} | {shown} |\n"


def update(page: Path, table: str) -> None:
    """Replace the table of a page."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table}{END}{rest.partition(END)[2]}")


def measurements(
    runs: int, with_virtual: bool
) -> Iterator[tuple[str, str, str, Callable[[], list[Sample]]]]:
    """Yield the fault, its injection, the detection mode, and what measures it."""
    for case in CASES:
        yield case.fault, case.injected, case.mode, partial(samples, case, runs)

    for fault, injected, controller in STORMS if with_virtual else ():
        mode = Case(fault, injected, controller, agent_dies).mode
        yield fault, injected, mode, partial(storms, controller, runs)


def storms(controller: Controller, runs: int) -> list[Sample]:
    """Measure a storm of failures in virtual time."""
    return [virtual_storm(controller, seed) for seed in range(1, runs + 1)]


@click.command()
@click.option(
    "--runs", default=10, show_default=True, help="Runs of each case; the table shows medians."
)
@click.option("--only", default="", help="Only cases whose fault or mode contains this.")
@click.option(
    "--virtual/--no-virtual", "with_virtual", default=True, help="The cases in virtual time, too."
)
@click.option(
    "--update",
    "page",
    type=click.Path(path_type=Path, exists=True),
    help="Write the table into this page.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    help="JSON lines of what is measured; what is there is not measured again.",
)
def main(
    runs: int, only: str, with_virtual: bool, page: Path | None, as_json: bool, keep: Path | None
) -> None:
    """Measure all faults."""
    rows = []
    known = {
        (done["fault"], done["mode"]): done
        for done in map(json.loads, keep.read_text().splitlines() if keep and keep.exists() else ())
    }

    for fault, injected, mode, measured in measurements(runs, with_virtual):
        if only not in f"{fault} {mode}":
            continue

        rows.append(known.get((fault, mode)) or row(fault, injected, mode, measured()))
        click.echo(_line(rows[-1]), err=True, nl=False)
        if keep and (fault, mode) not in known:
            with keep.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")

    click.echo(json.dumps(rows, indent=2) if as_json else markdown(rows))
    click.echo(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[1]:.1f}", err=True
    )
    if page:
        update(page, markdown(rows))


if __name__ == "__main__":
    main()
