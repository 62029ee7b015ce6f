"""The cost of a fault on Mininet: functions that cause it, wait for its end, and measure."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from controller.convergence import Convergence
from controller.fabric_controller import FabricController, LinkChange
from controller.fleet import Fleet
from emulation.errors import EmulationError
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.run import Run
from emulation.outcomes.outcome import Outcome
from fattree.shape.addressing import link_named, switch_named
from fattree.units import PS_PER_MS

FAULT_MS = 400
PATIENCE_S = 60
CORE_LINK = "agg0_0-core0_0"


class Sample(NamedTuple):
    """The measurements of a run; times in milliseconds."""

    lost: float
    recover: float
    detect: float | None = None
    plan: float | None = None
    install: float | None = None


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


def stages(seen: Convergence, lost_packets: int) -> Sample:
    """Return the stages of a convergence."""
    marks = (seen.at_ps, seen.detected_ps, seen.planned_ps or 0, seen.installed_ps or 0)
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
    seen = next(seen for seen in fabric.installations if link <= seen.change.down)
    sample = stages(seen, lost(outcome))
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
    last = next(seen for seen in fabric.installations if seen.failed == all_links)

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
    last_ms = [(seen.installed_ps or 0) / PS_PER_MS for seen in fabric.installations]

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
    avoided = [seen for seen in fabric.installations if seen.change.down]
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
