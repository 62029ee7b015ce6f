"""The planner of one switch, a process: from its own kernel's routes to its own switch's entries.

It knows the experiment, its switch's number, the namespace of its switch's routers and its switch's
P4Runtime address. It is that switch's controller, and reports its plans to the fabric.
"""

import json
import select
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from p4.config.v1 import p4info_pb2

from controller.errors import ControllerError
from controller.fleet import Access, Fleet
from controller.grpc_transport import GrpcTransport
from controller.kernel_routes import KernelRoutes, Rows
from controller.pipeline import Pipeline
from controller.planner_reports import SIGN_SECONDS, Reporter
from controller.routed import RoutedController
from fattree.experiment.model import Scenario
from fattree.units import PS_PER_NS
from hostagent.agents.process import CLONE_NEWNET, check, libc
from hostagent.own_packet import take

# The files that all planners of a fabric read, and the socket that they report to.
EXPERIMENT = "experiment.json"
PROGRAM = "program.json"
P4INFO = "p4info"
REPORTS = "reports"
# There is no other switch to compare with: a switch has four times as long (`late`).
PATIENCE_S = 1.0
# The interval of looks at a lost switch.
LOOK_AGAIN_SECONDS = 0.05


class CommandLine(NamedTuple):
    """The command line of a planner: its fabric's files, and where its own switch is."""

    folder: str
    switch: str
    namespace: str
    address: str
    election_id: str


@dataclass(slots=True)
class SwitchPlanner:
    """One switch's controller: `routes` is None for a core, which has no choice to make."""

    controller: RoutedController
    fleet: Fleet
    switch: int
    routes: KernelRoutes | None
    reporter: Reporter
    _weights: Rows | None = None
    _is_lost: bool = False

    def start(self) -> None:
        """Bring the switch from the entries that it holds to the plan of its routes."""
        # The routes come first: entries that are read back are compared with their plan.
        if self.routes is not None:
            self._weights = self.routes.weights()
            self.controller.set_routes(self.switch, self._weights)

        self.fleet.open()
        self._write(self.controller.restore(_now_ps(), self.switch))
        self.fleet.patience_s = PATIENCE_S
        self.tend()

    def look(self, seconds: float) -> None:
        """Wait for the kernel to change a route, for so long; bring the switch to its new plan."""
        ready, _, _ = select.select([self.routes] if self.routes else [], [], [], seconds)
        if ready and self.routes is not None:
            self.routes.drain()
            # Also the same routes as before are reported: that is the end of a short flap.
            self._weights = self.routes.weights()
            self._write(self.controller.on_routes(_now_ps(), self.switch, self._weights))

        self.tend()

    def tend(self) -> None:
        """Bring a lost switch back to the plan, without waiting for it."""
        back = self.fleet.poll(_now_ps())
        lost = self.fleet.lost.get(self.switch)
        if lost is not None and not self._is_lost:
            # Its name is known.
            self.reporter.report({"lost": str(lost).partition(": ")[2]})

        if self.switch in back:
            self._report(back[self.switch], time.monotonic_ns())
            self.reporter.report({"back": back[self.switch]})

        self._is_lost = lost is not None
        self.reporter.flush()

    def run(self) -> None:
        """Follow the routes for ever."""
        while True:
            self.look(LOOK_AGAIN_SECONDS if self._is_lost else SIGN_SECONDS)

    def _write(self, steps: Sequence[Any]) -> None:
        planned_ns = time.monotonic_ns()
        self.fleet.write(steps)
        if not self.fleet.lost:
            self._report(sum(len(step.changes) for step in steps), planned_ns)

    def _report(self, updates: int, planned_ns: int) -> None:
        """Report a plan that the switch has acknowledged."""
        self.reporter.report(
            {
                "weights": [] if self._weights is None else self._weights.tolist(),
                "ids": self.controller.ids(self.switch),
                "updates": updates,
                "planned_ns": planned_ns,
                "election_id": self.fleet.sessions[self.switch].election_id,
            }
        )


def _now_ps() -> int:
    return time.monotonic_ns() * PS_PER_NS


def write_files(folder: Path, experiment: dict[str, Any], access: Access) -> None:
    """Write the files that all planners of a fabric read."""
    (folder / EXPERIMENT).write_text(json.dumps(experiment), encoding="utf-8")
    (folder / PROGRAM).write_bytes(access.device_config)
    (folder / P4INFO).write_bytes(access.pipeline.p4info.SerializeToString())


def main(arguments: list[str]) -> None:
    """Plan a switch until the fabric ends."""
    line = CommandLine(*arguments)
    folder, switch = Path(line.folder), int(line.switch)
    reporter = Reporter(folder / REPORTS, switch)
    reporter.show_life()
    with open(line.namespace, encoding="utf-8") as namespace:
        check(line.namespace, libc.setns(namespace.fileno(), CLONE_NEWNET))

    # A fabric that has ended takes no reports.
    try:
        with suppress(ConnectionError):
            _planner(line, folder, switch, reporter)
    except ControllerError as error:
        sys.exit(str(error))


def _planner(line: CommandLine, folder: Path, switch: int, reporter: Reporter) -> None:
    experiment = json.loads((folder / EXPERIMENT).read_text(encoding="utf-8"))
    take(Scenario(**experiment["run"]), experiment["forms"])
    scenario = Scenario(**experiment["run"])
    pipeline = Pipeline(p4info_pb2.P4Info.FromString((folder / P4INFO).read_bytes()))
    controller = RoutedController(scenario, pipeline)
    access = Access(
        (folder / PROGRAM).read_bytes(),
        pipeline,
        connect=lambda _switch: GrpcTransport(line.address),
        election_id=int(line.election_id),
    )
    fleet = Fleet(controller, access, writers=1, switches=(switch,))
    tree = scenario.tree
    routes = KernelRoutes(tree, switch) if tree.uplinks(switch) else None
    planner = SwitchPlanner(controller, fleet, switch, routes, reporter)
    planner.start()
    planner.run()
