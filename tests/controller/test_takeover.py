"""Controllers that die, lose contact or lose an election, on switch processes behind real sockets
(no root, no Mininet).
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from controller.entries import Entries
from controller.errors import NotPrimaryError, UnreachableError
from controller.fabric_controller import FabricController, LinkChange
from controller.fleet import PATIENCE_S, Fleet
from controller.grpc_transport import GrpcTransport
from controller.session import Transport
from emulation.mininet.children import SOFTSWITCH_PROGRAM, children
from emulation.mininet.switch_processes import listens
from fattree.shape.addressing import device_id, switch_name
from tests.controller.doomed import SCENARIO, start

pytestmark = pytest.mark.slow
TREE = SCENARIO.tree
DOWN = LinkChange(down=frozenset({16}))
elections = iter(range(1, 1_000))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start the 20 switches of k = 4 as processes without interfaces.

    Return where their sockets are.
    """
    path = tmp_path_factory.mktemp("switches")
    with children() as processes:
        for switch in range(TREE.switches):
            name = switch_name(TREE, switch)
            options = [
                "--no-p4",
                "--device-id",
                str(device_id(switch)),
                "--",
                "--grpc-server-addr",
                f"unix:{path / name}.grpc",
            ]
            processes.start(name, [SOFTSWITCH_PROGRAM, *options], path / f"{name}.log")
        processes.await_all(lambda name: listens(path / f"{name}.grpc"), 90)
        processes.listen()
        for name, pid in processes.pids.items():
            (path / f"{name}.pid").write_text(str(pid))
        yield path


@pytest.fixture
def fleet(folder: Path) -> Iterator[tuple[FabricController, Fleet]]:
    """Return a controller in charge, its plan installed."""
    brain, fleet = start(folder, next(elections))
    fleet.write(brain.start())
    assert not fleet.lost
    yield brain, fleet
    fleet.close()


def held(fleet: Fleet) -> list[Entries]:
    """Return the entries that all switches hold."""
    return [
        {(entry.table, entry.key): (entry.action, entry.arguments) for entry in session.read()}
        for session in fleet.sessions.values()
    ]


def planned(brain: FabricController) -> list[Entries]:
    """Return the entries that they should hold."""
    return [dict(brain.entries(switch)) for switch in range(TREE.switches)]


def until(is_true: Callable[[], bool], fleet: Fleet, seconds: float = 20) -> None:
    """Poll the fleet until something is true."""
    limit = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < limit, "it never happened"
        fleet.poll(0)
        time.sleep(0.02)


@pytest.mark.parametrize("lived_ms", [0, 13, 47, 150, 333])
def test_a_controller_that_is_killed_has_a_successor_that_brings_the_switches_to_the_plan(
    folder: Path, lived_ms: int
) -> None:
    command = [sys.executable, "-m", "tests.controller.doomed", str(folder), str(next(elections))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as doomed:
        assert doomed.stdout is not None and doomed.stdout.readline() == "planned\n"
        time.sleep(lived_ms / 1000)
        doomed.kill()
    brain, successor = start(folder, next(elections))
    successor.write(brain.start())
    assert not successor.lost
    assert held(successor) == planned(brain)
    assert not brain.start(), "nothing is left to do"
    successor.close()


def test_a_second_controller_takes_over_and_the_first_one_comes_back_when_it_leaves(
    folder: Path, fleet: tuple[FabricController, Fleet]
) -> None:
    brain, first = fleet
    rival_brain, rival = start(folder, next(elections))
    before = held(rival)
    until(lambda: len(first.lost) == TREE.switches, first)
    assert {type(error) for error in first.lost.values()} == {NotPrimaryError}
    first.write(brain.on_event(0, DOWN))
    assert held(rival) == before, "the first one has written nothing"
    assert not rival_brain.start()
    rival.write(rival_brain.on_event(0, LinkChange(down=frozenset({0}))))
    rival.close()
    until(lambda: not first.lost, first)
    assert held(first) == planned(brain)
    assert brain.failed == DOWN.down


def test_a_frozen_switch_holds_up_nobody_and_is_caught_up_with_when_it_wakes(
    folder: Path,
) -> None:
    brain, fleet = start(folder, next(elections))
    fleet.patience_s = PATIENCE_S
    fleet.write(brain.start())
    steps = brain.on_event(0, DOWN)
    victim = steps[0].switch
    pid = int((folder / f"{switch_name(TREE, victim)}.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        fleet.write(steps)
        assert time.monotonic() - begun < 9, "its own deadline is 10 s"
        assert victim in fleet.lost

        # On a busy machine others may have been late, too: they come back at once.
        until(lambda: set(fleet.lost) == {victim}, fleet)
        awake = [switch for switch in range(TREE.switches) if switch != victim]
        entries_of = fleet.ask(lambda switch: fleet.sessions[switch].read(), awake)
        assert {
            switch: {(e.table, e.key): (e.action, e.arguments) for e in entries}
            for switch, entries in entries_of.items()
        } == {switch: dict(brain.entries(switch)) for switch in awake}

        # Trying to reach it takes none of the caller's time either.
        begun = time.monotonic()
        for _ in range(20):
            fleet.poll(0)
        assert time.monotonic() - begun < 9, "one deadline is 10 s"
        fleet.write(brain.on_event(0, LinkChange(down=frozenset({0, 20}))))
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: not fleet.lost, fleet)
    assert held(fleet) == planned(brain)
    fleet.close()


class Proxy:
    """A wire to a switch's socket that can be cut."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path, self._target = path, target
        self._listener: socket.socket | None = None
        self._ends: list[socket.socket] = []
        self.join()

    def join(self) -> None:
        """Let connections through."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """End all connections and refuse new ones."""
        assert self._listener is not None
        self.path.unlink()
        for end in (self._listener, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._ends = []

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(str(self._target))
                self._ends += [near, far]
                for reader, writer in ((near, far), (far, near)):
                    Thread(target=self._pump, args=(reader, writer), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def test_a_connection_that_is_cut_stops_nobody_else_and_is_caught_up_with(
    folder: Path, tmp_path: Path
) -> None:
    brain, fleet = start(folder, next(elections))
    fleet.write(brain.start())
    victim = 2
    proxy = Proxy(tmp_path / "proxy", folder / f"{switch_name(TREE, victim)}.grpc")
    fleet.close()
    connect = fleet.access.connect

    def through_the_proxy(switch: int) -> Transport:
        return (
            GrpcTransport(f"unix:{proxy.path}", deadline_s=10)
            if switch == victim
            else connect(switch)
        )

    access = replace(
        fleet.access,
        connect=through_the_proxy,
        is_reachable=lambda switch: switch != victim or listens(proxy.path),
        election_id=next(elections),
    )
    brain = FabricController(SCENARIO, access.pipeline)
    fleet = Fleet(brain, access)
    fleet.open()
    assert not brain.start(), "everything is in place"
    proxy.cut()
    until(lambda: victim in fleet.lost, fleet)
    assert isinstance(fleet.lost[victim], UnreachableError)
    fleet.write(brain.on_event(0, DOWN))
    assert set(fleet.lost) == {victim}
    proxy.join()
    until(lambda: not fleet.lost, fleet)
    assert held(fleet) == planned(brain)
    fleet.close()
    proxy.cut()
