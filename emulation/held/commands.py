"""A network that stays up: its traffic is started and its links are broken by commands
(`emulation.held.cli`).
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from controller.convergence import Convergence
from controller.fabric_controller import LinkChange
from emulation.errors import EmulationError
from emulation.held import switch_view
from emulation.held.server import Answer, Handler, control_server
from emulation.held.state import held_state
from emulation.mininet.counters import SwitchCounters
from emulation.mininet.fabric import MininetFabric, Run
from emulation.mininet.targets.target import address
from emulation.outcomes.outcome import Outcome
from fattree.addressing import device_id, link_name, link_named, switch_name, switch_named
from fattree.units import PS_PER_MS

RECENT = 50
Echo = Callable[[str], object]


def describe(outcome: Outcome) -> str:
    """Return a finished run in one line."""
    accounts = outcome.accounts
    return (
        f"complete in {outcome.cct_ps / PS_PER_MS:.1f} ms: {accounts.sent} packets sent, {accounts.received} received, "
        f"{accounts.dropped} dropped, {accounts.unrouted} without a route, {accounts.lost} lost on links, "
        f"{accounts.unaccounted} unaccounted for"
    )


class Held:
    """The commands of a held network; every handler gets a function that takes its answer."""

    def __init__(self, fabric: MininetFabric, echo: Echo) -> None:
        self._fabric = fabric
        self._echo = echo
        self._run: Run | None = None
        self._scenario = fabric.scenario
        self._waiting: list[Answer] = []
        self._last = "none yet"

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by name."""
        return {
            "link": self.link,
            "links": self.links,
            "status": self.status,
            "schedule": self.schedule,
            "pointers": self.pointers,
            "address": self.address,
            "traffic_start": self.traffic_start,
            "traffic_stop": self.traffic_stop,
            "live": self.live,
        }

    def tick(self) -> bool:
        """Finish a run that has ended; raises StartError where a switch has.

        Returns False: a held network goes on.
        """
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
            self._last = f"ended: {error}"

        self._echo(f"traffic {self._last}")
        for answer in self._waiting:
            answer(self._last)

        self._waiting.clear()

    def link(self, answer: Answer, name: str, up: bool, wait: bool = True) -> None:
        """Break or mend a link, and answer when the new schedules are in, or at once."""
        fabric = self._fabric
        link = link_named(fabric.tree, name)
        if up is (link not in fabric.failed):
            raise EmulationError(
                f"{link_name(fabric.tree, link)} is {'up' if up else 'down'} already"
            )

        links = frozenset((link,))
        change = LinkChange(up=links) if up else LinkChange(down=links)
        text = f"{link_name(fabric.tree, link)} is {'up' if up else 'down'}"

        def installed(installation: Convergence) -> None:
            self._echo(f"{text}; new schedules are in after {_milliseconds(installation)} ms")
            if wait:
                answer(_installed(link_name(fabric.tree, link), installation))

        installation = fabric.change_links(change, installed)
        if fabric.controller.convergence_ps is None:
            self._echo(text)

        if fabric.controller.convergence_ps is None or not wait:
            answer(_installed(link_name(fabric.tree, link), installation))

    def links(self, answer: Answer) -> None:
        """List the inter-switch links, and how many packets each has lost."""
        tree = self._fabric.tree
        counters = self._fabric.switches.counters()
        rows = []

        for link in range(tree.links):
            lost = sum(counters[end.switch].ports[end.port].lost for end in tree.link_ends(link))
            rows.append(
                {"link": link_name(tree, link), "up": link not in self._fabric.failed, "lost": lost}
            )

        answer(rows)

    def status(self, answer: Answer) -> None:
        """Describe the network and every switch."""
        fabric = self._fabric
        scenario = self._fabric.scenario
        counters = fabric.switches.counters()
        answer(
            {
                "name": scenario.name,
                "k": scenario.fabric.k,
                "policy": scenario.policy,
                "seed": scenario.seed,
                "switch": fabric.switches.target.name,
                "process": os.getpid(),
                "traffic": "running" if self._run else self._last,
                "failed": [link_name(fabric.tree, link) for link in sorted(fabric.failed)],
                "detection": scenario.controller.detection,
                "avoided": [link_name(fabric.tree, link) for link in sorted(fabric.routed)],
                "convergences": [
                    change.row(fabric.tree) for change in fabric.installations[-RECENT:]
                ],
                "switches": [
                    self._switch_status(switch, own) for switch, own in enumerate(counters)
                ],
            }
        )

    def _switch_status(self, switch: int, counters: SwitchCounters) -> dict[str, Any]:
        fabric = self._fabric
        tree = self._fabric.tree
        ports = counters.ports.values()
        failed = [
            link
            for link in sorted(fabric.failed)
            if switch in {end.switch for end in tree.link_ends(link)}
        ]

        return {
            "name": switch_name(tree, switch),
            "address": address(fabric.folder, switch_name(tree, switch)),
            "pipeline": fabric.scenario.scheme.program,
            "lost_contact": str(fabric.fleet.lost[switch]) if switch in fabric.fleet.lost else None,
            "entries": 0 if switch in fabric.fleet.lost else len(fabric.entries(switch)),
            "received": sum(port.received for port in ports),
            "sent": sum(port.packets for port in ports),
            "drops": sum(port.drops + port.missed for port in ports) + counters.unrouted,
            "lost": sum(port.lost for port in ports),
            "max_queue_bytes": max(port.max_queue_bytes for port in ports),
            "failed": [link_name(tree, link) for link in failed],
        }

    def schedule(self, answer: Answer, switch: str) -> None:
        """Show the groups and schedules that a switch holds, read back from it."""
        answer([asdict(row) for row in self._groups(switch_named(self._fabric.tree, switch))])

    def _groups(self, switch: int) -> list[switch_view.GroupView]:
        return switch_view.groups(self._fabric.tree, switch, self._fabric.entries(switch))

    def pointers(self, answer: Answer, switch: str) -> None:
        """Show a switch's pointers."""
        number = switch_named(self._fabric.tree, switch)
        if reason := self._fabric.switches.target.refused_registers:
            raise EmulationError(f"{switch}: {reason}")

        cells = self._fabric.sessions[number].read_register("pointers")
        answer([asdict(row) for row in switch_view.pointers(self._groups(number), cells)])

    def address(self, answer: Answer, switch: str) -> None:
        """Say where a switch listens."""
        number = switch_named(self._fabric.tree, switch)
        answer({"address": address(self._fabric.folder, switch), "device_id": device_id(number)})

    def live(self, answer: Answer) -> None:
        """Tell whoever looks on (`emulation.live`) everything that can be counted at this moment."""
        answer(held_state(self._fabric, self._scenario, self._run is not None, self._last))

    def traffic_start(
        self, answer: Answer, message_bytes: int | None = None, wait: bool = False
    ) -> None:
        """Run the collective once more."""
        if self._run is not None:
            raise EmulationError("traffic is running: wait for its end, or `ofan traffic stop`")

        scenario = self._fabric.scenario
        if message_bytes is not None:
            collective = scenario.collective.model_copy(update={"message_bytes": message_bytes})
            scenario = scenario.model_copy(update={"collective": collective})

        self._scenario, self._run = scenario, Run(self._fabric, scenario)
        self._run.start(with_events=False)
        if wait:
            self._waiting.append(answer)
        else:
            answer("traffic has started")

    def traffic_stop(self, answer: Answer) -> None:
        """End the running traffic."""
        if self._run is None:
            raise EmulationError("no traffic is running")

        self._fabric.agents.stop()
        self._waiting.append(answer)


def _milliseconds(installation: Convergence) -> str:
    return f"{_after_ps(installation) / PS_PER_MS:.1f}"


def _after_ps(installation: Convergence) -> int:
    """Return how long it took from the change of the link, detection included."""
    return (installation.installed_ps or installation.at_ps) - installation.at_ps


def _installed(link: str, installation: Convergence | None) -> dict[str, Any]:
    if installation is None:
        return {"link": link, "installed_ms": None, "updates": 0, "switches": 0}

    after = None if installation.installed_ps is None else _after_ps(installation) / PS_PER_MS
    return {
        "link": link,
        "installed_ms": after,
        "updates": installation.updates,
        "switches": installation.switches,
    }


def hold(fabric: MininetFabric, echo: Echo) -> None:
    """Serve commands until Ctrl-C."""
    held = Held(fabric, echo)
    fabric.switches.may_restart = True
    fabric.on_news = echo

    with control_server(fabric.folder, fabric.loop.selector, held.handlers):
        fabric.loop.run(held.tick)
