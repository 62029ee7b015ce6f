"""The planners of a fabric's switches as processes: started, heard, and started again.

They are beside the routers, below the same parent. A process that a signal has stopped is found by
its state in /proc: questions to 60 daemons would disturb them most while they have most to do.
"""

import select
import time
from collections.abc import Callable

from controller.errors import SwitchError, UnreachableError
from controller.fleet import Access
from controller.planner_reports import Report, Reports
from controller.switch_planner import REPORTS, CommandLine, write_files
from emulation.errors import StartError
from emulation.mininet.bgp.routers import START_SECONDS, Routers
from emulation.mininet.children import PLANNER_PROGRAM, ending, last_words
from emulation.mininet.loop import Loop
from emulation.mininet.targets.target import address
from fattree.experiment.model import Scenario
from fattree.shape.addressing import switch_name
from hostagent.own_packet import told
from sim.sweeps.store import plain

LOOK_SECONDS = 0.5
OnReport = Callable[[int, Report], object]


class Planners:
    """All planners of a network; `lost` are the switches that theirs cannot reach."""

    def __init__(
        self, scenario: Scenario, routers: Routers, access: Access, loop: Loop, on_report: OnReport
    ) -> None:
        self.lost: dict[int, SwitchError] = {}
        tree = scenario.tree
        self._names = {switch: switch_name(tree, switch) for switch in range(tree.switches)}
        self._switch_of = {f"{name} planner": switch for switch, name in self._names.items()}
        self._routers = routers
        self._processes = routers.processes
        self._folder = routers.run / "planners"
        self._folder.mkdir(mode=0o700)
        write_files(self._folder, {"run": plain(scenario), "forms": told(scenario)}, access)
        self._reports = Reports(self._folder / REPORTS)
        self._loop = loop
        self._on_report = on_report
        self._elections = dict.fromkeys(self._names, access.election_id - 1)
        self._starting: set[int] = set()
        self._frozen: set[str] = set()
        self._news: list[str] = []
        self._next_look = 0.0
        loop.watch(self._reports, self._hear)

    def start(self) -> None:
        """Start all planners, and wait until each has brought its switch to its plan.

        Raises StartError, naming a planner that ends or is late.
        """
        for switch in self._names:
            self._start(switch)

        deadline = time.monotonic() + START_SECONDS
        while self._starting:
            self._processes.refuse_dead()
            if time.monotonic() > deadline:
                switch = min(self._starting)
                raise StartError(str(self.lost.get(switch, f"{self._names[switch]} has no plan")))

            select.select([self._reports], [], [], LOOK_SECONDS)
            self._hear()

        self._news.clear()

    def restart(self) -> None:
        """Replace all planners by new ones without memory."""
        self._processes.kill(set(self._switch_of))
        self.start()

    def close(self) -> None:
        """End all planners; the switches go on forwarding."""
        self._loop.unwatch(self._reports)
        self._reports.close()
        # A planner has nothing to lose: its successor reads its switch's entries.
        self._processes.kill(set(self._switch_of))

    def tend(self, may_restart: bool) -> list[str]:
        """Return a line about each planner or router that has ended, is frozen, or is back.

        A planner that was killed is started again. Raises StartError where nothing may end.
        """
        if not may_restart:
            self._processes.refuse_dead()

        self._hear()
        self._processes.listen()
        for name in list(self._processes.exited):
            self._tend_ended(name, self._processes.exited.pop(name))

        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK_SECONDS
            self._find_frozen(may_restart)

        news, self._news = self._news, []
        return news

    def _tend_ended(self, name: str, code: int) -> None:
        self._frozen.discard(name)
        if name not in self._switch_of:
            self._news.append(f"{name} {ending(code)}; the other routers go on")
        elif code >= 0:
            # It has given up, and so would the next.
            raise StartError(f"{name} {ending(code)}: {last_words(self._processes.logs[name])}")
        else:
            self._start(self._switch_of[name])
            self._news.append(f"{name} {ending(code)}; it is started again")

    def _find_frozen(self, may_restart: bool) -> None:
        silent = {f"{self._names[switch]} planner" for switch in self._reports.silent()}
        frozen = self._processes.stopped() | silent
        if frozen and not may_restart:
            raise StartError(f"{min(frozen)} is frozen")

        self._news += [f"{name} is frozen; the others go on" for name in frozen - self._frozen]
        self._news += [f"{name} is awake again" for name in self._frozen - frozen]
        self._frozen = frozen

    def _start(self, switch: int) -> None:
        name = self._names[switch]
        # The higher election id wins, even where the switch has not noticed the old planner's end.
        self._elections[switch] += 1
        line = CommandLine(
            str(self._folder),
            switch=str(switch),
            namespace=self._routers.namespace(switch),
            address=address(self._routers.run, name),
            election_id=str(self._elections[switch]),
        )
        log = self._folder / f"{name}.log"
        self._processes.start(f"{name} planner", [PLANNER_PROGRAM, *line], log)
        self._starting.add(switch)

    def _hear(self) -> None:
        for switch, report in self._reports.read():
            name = self._names[switch]
            match report:
                case {"weights": _, "updates": updates, "election_id": election_id}:
                    self._elections[switch] = election_id
                    self.lost.pop(switch, None)
                    self._on_report(switch, report)
                    if switch in self._starting:
                        self._starting.remove(switch)
                        back = f"{name} planner is back: {updates} updates have brought {name}"
                        self._news.append(f"{back} to the plan")
                case {"lost": message}:
                    self.lost[switch] = UnreachableError(name, message)
                    self._news.append(f"{self.lost[switch]}; the others go on")
                case {"back": updates}:
                    back = f"{name} is back: {updates} updates have brought it to the plan"
                    self._news.append(back)
