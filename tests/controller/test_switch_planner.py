"""The planner of one switch: its entries after its routes, its reports, and its signs of life."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from controller import planner_reports
from controller.fleet import Access, Fleet
from controller.planner_reports import Report, Reporter, Reports
from controller.routed import ReportedController, RoutedController
from controller.session import InProcess, Session
from controller.switch_planner import SwitchPlanner
from emulation.programs.switch_program import built_in, size_of
from emulation.virtual.control import SwitchDraws
from fattree.experiment.model import Fabric, Scenario
from fattree.routes.bgp import AnnouncedPaths, uplink_rows
from fattree.routes.wecmp import Ints, LinkState
from fattree.shape.addressing import device_id
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError

SCENARIO = Scenario(fabric=Fabric(k=4))
TREE = SCENARIO.tree
EDGE, CORE = 0, TREE.first_core
PROGRAM = built_in("ofan", size_of(TREE))


def weights(*failed: int) -> Ints:
    links = LinkState.without(TREE, frozenset(failed))
    return list(uplink_rows(TREE, links, AnnouncedPaths(TREE, links)))[EDGE]


class Routes:
    """Routes changed by hand, in a kernel's place: readable when they have changed."""

    def __init__(self) -> None:
        self._near, self._far = socket.socketpair()
        self._rows = weights()

    def change(self, rows: Ints) -> None:
        self._rows = rows
        self._far.send(b"!")

    def fileno(self) -> int:
        return self._near.fileno()

    def drain(self) -> None:
        self._near.recv(1)

    def weights(self) -> Ints:
        return self._rows

    def close(self) -> None:
        self._near.close()
        self._far.close()


class Bench:
    """A switch, its planner, and the reports that an observer has read."""

    def __init__(self, folder: Path) -> None:
        self.routes = Routes()
        self.reports = Reports(folder / "reports")
        self.observer = ReportedController(SCENARIO, PROGRAM.pipeline)
        self.service = self.switch(EDGE)
        self.planner = self.start(EDGE, folder)

    def switch(self, number: int) -> P4RuntimeService:
        draws = SwitchDraws(1, number)
        return P4RuntimeService(Switch(device_id(number), lambda: 0, draws, TREE.ports(number)))

    def start(self, number: int, folder: Path, election_id: int = 1) -> SwitchPlanner:
        controller = RoutedController(SCENARIO, PROGRAM.pipeline)
        access = Access(
            PROGRAM.bmv2_json,
            PROGRAM.pipeline,
            connect=lambda _switch: InProcess(self.service, StatusError),
            election_id=election_id,
        )
        planner = SwitchPlanner(
            controller,
            Fleet(controller, access, writers=1, switches=(number,)),
            number,
            self.routes if TREE.uplinks(number) else None,  # type: ignore[arg-type]
            Reporter(folder / "reports", number),
        )
        planner.start()
        return planner

    def stop(self) -> None:
        """End the planner."""
        self.planner.fleet.close()
        self.planner.reporter.close()

    def hear(self) -> list[Report]:
        """Return the reports that have something in them, and note them."""
        reports = [heard for heard in self.reports.read() if heard[1].keys() > {"at_ns"}]
        for switch, report in reports:
            if "weights" in report:
                rows = np.array(report["weights"], dtype=np.int64)
                self.observer.note(switch, rows, report["ids"])

        return [report for _, report in reports]

    def held(self) -> dict[object, object]:
        """Return the entries that the switch holds."""
        session = Session(
            InProcess(self.service, StatusError), PROGRAM.pipeline, device_id(EDGE), "edge0_0"
        )
        return {(e.table, e.key): (e.action, e.arguments) for e in session.read()}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    started = Bench(tmp_path)
    yield started
    started.stop()
    started.reports.close()
    started.routes.close()


def test_a_planner_follows_its_routes_and_reports_each_plan(bench: Bench) -> None:
    hello, first = bench.hear()
    assert hello["switch"] == EDGE and first["updates"] > 0
    before = bench.held()
    assert before == bench.observer.entries(EDGE)

    bench.routes.change(weights(0))
    bench.planner.look(5)
    (report,) = bench.hear()
    assert report["updates"] > 0 and report["planned_ns"] <= report["at_ns"]
    assert before != bench.held() == bench.observer.entries(EDGE)

    bench.routes.change(weights())
    bench.planner.look(5)
    bench.hear()
    assert bench.held() == before == bench.observer.entries(EDGE)


def test_a_successor_writes_only_what_differs(bench: Bench, tmp_path: Path) -> None:
    bench.hear()
    bench.stop()
    bench.planner = bench.start(EDGE, tmp_path, election_id=2)
    assert bench.hear()[-1]["updates"] == 0

    updates = []
    for rows in (weights(TREE.edge_links), weights()):
        bench.routes.change(rows)
        bench.planner.look(5)
        updates.append(bench.hear()[-1]["updates"])

    # The same routes while no planner is there: its successor writes as much.
    bench.stop()
    bench.routes.change(weights(TREE.edge_links))
    bench.planner = bench.start(EDGE, tmp_path, election_id=3)
    assert bench.hear()[-1]["updates"] == updates[0] > 0
    assert bench.held() == bench.observer.entries(EDGE)


def test_a_switch_that_comes_back_empty_gets_its_entries(bench: Bench) -> None:
    before = bench.held()
    bench.hear()
    bench.service = bench.switch(EDGE)
    bench.planner.fleet.sessions[EDGE].close()
    kinds: list[str] = []
    limit = time.monotonic() + 20
    while "back" not in kinds and time.monotonic() < limit:
        bench.planner.look(0.01)
        kinds += [kind for report in bench.hear() for kind in report]

    assert kinds.index("lost") < kinds.index("weights") < kinds.index("back")
    assert bench.held() == before == bench.observer.entries(EDGE)


def test_a_core_has_a_planner_without_routes(bench: Bench, tmp_path: Path) -> None:
    bench.stop()
    bench.service = bench.switch(CORE)
    bench.planner = bench.start(CORE, tmp_path)
    bench.planner.look(0)
    assert bench.hear()[-1]["weights"] == []
    assert len(bench.observer.entries(CORE)) > TREE.pods


def test_a_planner_without_signs_of_life_is_silent_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_reports, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(planner_reports, "SIGN_SECONDS", 0.01)
    reports = Reports(tmp_path / "reports")
    lively, still = (Reporter(tmp_path / "reports", switch) for switch in (3, 7))
    lively.show_life()
    time.sleep(0.5)
    list(reports.read())
    assert reports.silent() == {7}

    still.report({"back": 0})
    assert [switch for switch, report in reports.read() if "back" in report] == [7]
    assert reports.silent() == set()

    still.close()
    time.sleep(0.4)
    list(reports.read())
    assert reports.silent() == set()
    lively.close()
    reports.close()


def test_reports_that_find_no_room_wait_in_their_order(tmp_path: Path) -> None:
    reports = Reports(tmp_path / "reports")
    reporter = Reporter(tmp_path / "reports", 0)
    for number in range(2_000):
        reporter.report({"number": number, "filler": "x" * 1_000})

    numbers: list[int] = []
    while len(numbers) < 2_000:
        numbers += [report["number"] for _, report in reports.read() if "number" in report]
        reporter.flush()

    assert numbers == list(range(2_000))
    reporter.close()
    reports.close()
