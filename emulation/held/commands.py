"""A network that stays up: commands start its traffic and break its links."""

import os
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from controller.convergence import Convergence
from controller.fabric_controller import LinkChange
from emulation.errors import EmulationError
from emulation.held import switch_view
from emulation.held.messages import (
    ENDED,
    ArrayView,
    ConvergenceState,
    GetAddress,
    GetPointers,
    GetRegisters,
    GetSchedule,
    GetState,
    GetStatus,
    GroupView,
    HeldState,
    Installed,
    LinkState,
    ListLinks,
    PointerView,
    SetLink,
    SetRate,
    StartTraffic,
    Status,
    StopTraffic,
    SwitchAddress,
    SwitchState,
)
from emulation.held.server import Handlers, control_server
from emulation.held.state import held_state
from emulation.mininet.counters import SwitchCounters
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.run import Run
from emulation.mininet.targets.target import address
from emulation.outcomes.changes import RECENT
from emulation.outcomes.outcome import Outcome
from fattree.experiment.failures import LEAST_SHARE
from fattree.experiment.model import Collective, Scenario
from fattree.routes.failures import Links
from fattree.routes.slow_links import FULL, Slow, SlowLink, after, at_rate
from fattree.shape.addressing import device_id, link_name, link_named, switch_name, switch_named
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_MS

AnswerT = TypeVar("AnswerT")
Answer = Callable[[AnswerT], None]
# A day: no user waits longer for one message of a collective.
LONGEST_SECONDS = 86_400
Echo = Callable[[str], object]


def describe(outcome: Outcome) -> str:
    """Return a finished run in one line."""
    return f"complete in {outcome.cct_ps / PS_PER_MS:.1f} ms: {outcome.accounts.words()}"


class Held:
    """The commands of a held network; every handler gets a function that takes its answer."""

    def __init__(self, fabric: MininetFabric, echo: Echo, last: str = "none yet") -> None:
        self._fabric = fabric
        self._echo = echo
        self._run: Run | None = None
        self._scenario = fabric.scenario
        self._waiting: list[Answer[str]] = []
        self._is_stopped = False
        # The result of the last run, also of a run from before the network was held.
        self._last = last

    @property
    def handlers(self) -> Handlers:
        """Return the handler of each request."""
        return {
            SetLink: self.link,
            SetRate: self.rate,
            ListLinks: self.links,
            GetStatus: self.status,
            GetSchedule: self.schedule,
            GetPointers: self.pointers,
            GetRegisters: self.registers,
            GetAddress: self.address,
            StartTraffic: self.start_traffic,
            StopTraffic: self.stop_traffic,
            GetState: self.live,
        }

    def tick(self) -> bool:
        """Finish a run that has ended; raises StartError where a switch has.

        Returns False: a held network goes on.
        """
        # A run looks after the network by itself (`Run.is_over`).
        if self._run is None:
            self._fabric.tend()
        elif self._run.is_over:
            self._finish(self._run)

        return False

    def _finish(self, run: Run) -> None:
        self._run = None
        try:
            self._last = describe(run.outcome())
        except EmulationError as error:
            self._last = f"{ENDED}{'stopped, ' if self._is_stopped else ''}{error}"

        self._echo(f"traffic {self._last}")
        for answer in self._waiting:
            answer(self._last)

        self._waiting.clear()

    def link(self, request: SetLink, answer: Answer[Installed]) -> None:
        """Break or mend a link, and answer when the new schedules are in, or at once."""
        fabric = self._fabric
        up = request.up
        link = link_named(fabric.tree, request.name)
        name = link_name(fabric.tree, link)
        text = f"{name} is {'up' if up else 'down'}"
        if up is (link not in fabric.failed):
            slow = ", but slow: `ofan link restore` gives it its rate back"
            is_slow = up and link in {slow_link.link for slow_link in fabric.slow}
            raise EmulationError(f"{text} already{slow if is_slow else ''}")

        links = frozenset((link,))
        change = LinkChange(up=links) if up else LinkChange(down=links)
        self._change(change, name, text, wait=request.wait, answer=answer)

    def rate(self, request: SetRate, answer: Answer[Installed]) -> None:
        """Let a link carry a share of its rate, and answer as `link` does."""
        fabric = self._fabric
        if not LEAST_SHARE <= request.rate <= FULL:
            raise EmulationError(
                f"rate = {request.rate:g}: a link carries {LEAST_SHARE:g} to 1 of its own rate"
            )

        link = link_named(fabric.tree, request.name)
        name = link_name(fabric.tree, link)
        text = f"{name} is {at_rate(request.rate)}"
        slow = SlowLink(link, request.rate, request.rate)
        if after(fabric.slow, (slow,)) == fabric.slow:
            raise EmulationError(f"{text} already")

        change = LinkChange(paced=frozenset((slow,)))
        self._change(change, name, text, wait=request.wait, answer=answer)

    def _change(
        self,
        change: LinkChange,
        name: str,
        text: str,
        *,
        wait: bool,
        answer: Answer[Installed],
    ) -> None:
        """Change a link, and answer when the new schedules are in, or at once."""
        fabric = self._fabric

        def installed(installation: Convergence) -> None:
            self._echo(f"{text}; new schedules installed after {_milliseconds(installation)} ms")
            if wait:
                answer(_installed(name, installation))

        # Neither probes nor the kernel tell how fast a link is, so that nothing would ever be
        # installed, nor where routes never change.
        is_followed = fabric.controller.convergence_ps is not None and (
            fabric.is_announced or not change.paced
        )
        installation = fabric.change_links(change, installed if is_followed else None)
        if not is_followed:
            self._echo(text)

        if not is_followed or not wait:
            answer(_installed(name, installation))

    def links(self, _request: ListLinks, answer: Answer[list[LinkState]]) -> None:
        """List the inter-switch links, and how many packets each has lost."""
        tree = self._fabric.tree
        counters = self._fabric.switches.counters()
        shares = {slow.link: slow.share for slow in self._fabric.slow}
        answer(
            [
                LinkState(
                    link=link_name(tree, link),
                    up=link not in self._fabric.failed,
                    rate=shares.get(link, FULL),
                    lost_to_failure=sum(
                        counters[end.switch].ports[end.port].lost for end in tree.link_ends(link)
                    ),
                )
                for link in range(tree.links)
            ]
        )

    def status(self, _request: GetStatus, answer: Answer[Status]) -> None:
        """Describe the network and every switch."""
        fabric = self._fabric
        scenario = fabric.scenario
        counters = fabric.switches.counters()
        entries = fabric.held_entries()
        answer(
            Status(
                name=scenario.name,
                fabric=scenario.tree.label,
                policy=scenario.policy,
                seed=scenario.seed,
                switch=fabric.switches.target.name,
                process=os.getpid(),
                traffic=f"running (before: {self._last})" if self._run else self._last,
                failed=_names(fabric.tree, fabric.failed),
                slow=_shares(fabric.tree, fabric.slow),
                detection=_detection(scenario),
                avoided=_names(fabric.tree, fabric.routed),
                spared=[*_shares(fabric.tree, fabric.routed_slow)],
                convergences=[
                    _convergence(fabric.tree, seen) for seen in fabric.installations[-RECENT:]
                ],
                switches=[
                    self._switch_state(switch, counts, len(entries.get(switch, ())))
                    for switch, counts in enumerate(counters)
                ],
            )
        )

    def _switch_state(self, switch: int, counters: SwitchCounters, entries: int) -> SwitchState:
        fabric = self._fabric
        tree = fabric.tree
        name = switch_name(tree, switch)
        ports = counters.ports.values()
        is_reported = all(port.max_queue_bytes is not None for port in ports)
        lost = fabric.fleet.lost.get(switch)
        failed = {
            link for link in fabric.failed if switch in {end.switch for end in tree.link_ends(link)}
        }

        return SwitchState(
            name=name,
            address=address(fabric.folder, name),
            pipeline=fabric.scenario.scheme.program,
            lost_contact=None if lost is None else str(lost),
            entries=entries,
            received=sum(port.received for port in ports),
            sent=sum(port.packets for port in ports),
            dropped=sum(port.drops + port.missed for port in ports) + counters.unrouted
            if is_reported
            else None,
            lost_to_failure=sum(port.lost for port in ports),
            # The longest of any port ever, since the switch has started.
            max_queue_bytes=max(port.max_queue_bytes or 0 for port in ports)
            if is_reported
            else None,
            failed=_names(tree, failed),
        )

    def schedule(self, request: GetSchedule, answer: Answer[list[GroupView]]) -> None:
        """Show the groups and schedules that a switch holds, read back from it."""
        number = switch_named(self._fabric.tree, request.switch)
        answer(switch_view.groups(self._fabric.tree, number, self._fabric.entries(number)))

    def pointers(self, request: GetPointers, answer: Answer[list[PointerView]]) -> None:
        """Show a switch's pointers."""
        number = self._switch_with_registers(request.switch)

        # The register of p4src/include/pointer.p4; the groups tell which of its cells are in use.
        # These are read first: that refuses a switch which does not answer.
        entries = self._fabric.entries(number)
        cells = self._fabric.sessions[number].read_register("pointers")
        seen = switch_view.groups(self._fabric.tree, number, entries)
        answer(switch_view.pointers(seen, entries, cells))

    def registers(self, request: GetRegisters, answer: Answer[list[ArrayView]]) -> None:
        """Show a switch's registers and counters."""
        number = self._switch_with_registers(request.switch)
        answer(switch_view.arrays(self._fabric.sessions[number].read_arrays()))

    def _switch_with_registers(self, name: str) -> int:
        """Return the number of a switch; raises EmulationError if its registers are unreadable."""
        number = switch_named(self._fabric.tree, name)
        if reason := self._fabric.switches.target.refused_registers:
            raise EmulationError(f"{name}: {reason}")

        return number

    def address(self, request: GetAddress, answer: Answer[SwitchAddress]) -> None:
        """Say where a switch listens."""
        number = switch_named(self._fabric.tree, request.switch)
        answer(SwitchAddress(address(self._fabric.folder, request.switch), device_id(number)))

    def live(self, _request: GetState, answer: Answer[HeldState]) -> None:
        """Answer a viewer with all counts of this moment."""
        answer(held_state(self._fabric, self._scenario, self._run is not None, self._last))

    def start_traffic(self, request: StartTraffic, answer: Answer[str]) -> None:
        """Run the collective once more."""
        if self._run is not None:
            raise EmulationError("traffic is running: wait for its end, or `ofan traffic stop`")

        scenario = self._fabric.scenario
        if request.message_bytes is not None:
            scenario = with_messages(scenario, request.message_bytes)

        # Not before the hosts have taken it: a run that they refuse is not running.
        run = Run(self._fabric, scenario)
        run.start(with_events=False)
        self._scenario = scenario
        self._run = run
        self._is_stopped = False

        if request.wait:
            self._waiting.append(answer)
        else:
            answer("traffic has started")

    def stop_traffic(self, _request: StopTraffic, answer: Answer[str]) -> None:
        """End the running traffic."""
        if self._run is None:
            raise EmulationError("no traffic is running")

        # Answered when the hosts have stopped, with their report.
        self._is_stopped = True
        self._fabric.agents.stop()
        self._waiting.append(answer)


def with_messages(scenario: Scenario, message_bytes: int) -> Scenario:
    """Return a scenario with messages of another size.

    Raises EmulationError for a size that the experiment's file could not have either, or with
    which a run would take too long.
    """
    asked = f"message_bytes = {message_bytes}"
    try:
        collective = Collective.model_validate(
            {**scenario.collective.model_dump(), "message_bytes": message_bytes}
        )
    except ValidationError as error:
        raise EmulationError(f"{asked}: {error.errors()[0]['msg'].lower()}") from None

    seconds = message_bytes * 8 / scenario.rate_bps
    if seconds > LONGEST_SECONDS:
        raise EmulationError(
            f"{asked}: at {scenario.fabric.rate_gbps:g} Gb/s a message takes {seconds:,.0f} s,"
            f" at most {LONGEST_SECONDS:,} make sense"
        )

    return scenario.model_copy(update={"collective": collective})


def _names(tree: FatTree, links: Links | set[int]) -> list[str]:
    return [link_name(tree, link) for link in sorted(links)]


def _shares(tree: FatTree, slow: Slow) -> dict[str, float]:
    """Return which shares of their rates links carry, by name."""
    return {link_name(tree, link.link): link.share for link in sorted(slow)}


def _detection(scenario: Scenario) -> str:
    is_routed = scenario.controller.kind == "bgp"
    return "bgp" if is_routed else scenario.controller.detection


def _milliseconds(installation: Convergence) -> str:
    return f"{_after_ps(installation) / PS_PER_MS:.1f}"


def _after_ps(installation: Convergence) -> int:
    """Return how long it took from the change of the link, detection included."""
    return (installation.installed_ps or installation.at_ps) - installation.at_ps


def _installed(link: str, installation: Convergence | None) -> Installed:
    # A controller that gets no announcements does not know the change yet: answered at once.
    if installation is None:
        return Installed(link, installed_ms=None, updates=0, switches=0)

    is_installed = installation.installed_ps is not None
    return Installed(
        link=link,
        installed_ms=_after_ps(installation) / PS_PER_MS if is_installed else None,
        updates=installation.updates,
        switches=installation.switches,
    )


def _convergence(tree: FatTree, seen: Convergence) -> ConvergenceState:
    return ConvergenceState(
        links_down=_names(tree, seen.change.down),
        links_up=_names(tree, seen.change.up),
        rates=_shares(tree, seen.change.paced),
        detection=seen.detection,
        failed_ms=_in_ms(seen.failed_ps),
        detected_ms=_in_ms(seen.detected_ps),
        planned_ms=_in_ms(seen.planned_ps),
        installed_ms=_in_ms(seen.installed_ps),
        updates=seen.updates,
        switches=seen.switches,
    )


def _in_ms(at_ps: int | None) -> float | None:
    return None if at_ps is None else at_ps / PS_PER_MS


def hold(fabric: MininetFabric, echo: Echo, first: Outcome) -> None:
    """Serve commands until Ctrl-C, after a first run."""
    held = Held(fabric, echo, describe(first))
    # From here on a switch that ends is no reason to end: somebody may have wanted to see that.
    fabric.switches.may_restart = True
    fabric.on_news = echo

    with control_server(fabric.folder, fabric.loop.selector, held.handlers):
        fabric.loop.run(held.tick)
