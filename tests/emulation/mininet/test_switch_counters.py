"""Counters of now: a switch that answers too late has no counters this time."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulation.mininet import switch_processes
from emulation.mininet.children import Children
from emulation.mininet.counters import PortCounters, SwitchCounters
from emulation.mininet.kernel import InterfaceBooks, InterfaceCounts
from emulation.mininet.switch_processes import Switches
from emulation.mininet.targets import SOFTSWITCH
from fattree.experiment.model import Fabric, Scenario
from fattree.shape.addressing import interface_name, switch_name

SCENARIO = Scenario(fabric=Fabric(k=2))
SLOW = switch_name(SCENARIO.tree, 0)


class Answers:
    """Answers of switches: the requests to the slow switch, which waits until it is `woken`."""

    def __init__(self) -> None:
        self.woken = threading.Event()
        self.woken.set()
        self.asked = 0

    def counters(self, path: Path, kernel: Mapping[int, InterfaceCounts]) -> SwitchCounters:
        if path.stem == SLOW:
            self.asked += 1
            assert self.woken.wait(30)

        return SwitchCounters({port: PortCounters() for port in kernel}, unrouted=self.asked)


@pytest.fixture
def answers() -> Iterator[Answers]:
    switch_answers = Answers()
    yield switch_answers
    switch_answers.woken.set()


def test_whoever_answers_a_moment_too_late_is_silent(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = replace(SOFTSWITCH, counters=answers.counters)
    channel = socket.socket()
    switches = Switches(SCENARIO, target, tmp_path, Children(channel))
    assert not any(switch.is_silent for switch in switches.counters())

    # Its answer comes after it has been looked for, and before the others' are.
    answers.woken.clear()
    monkeypatch.setattr(switch_processes, "late", lambda *_: time.sleep(0.5))
    answer = Switches._answer

    def wake_first(self: Switches, asked: Any) -> SwitchCounters | None:
        answers.woken.set()
        wait([self._asked[0]])
        return answer(self, asked)

    monkeypatch.setattr(Switches, "_answer", wake_first)
    slow = switches.counters()[0]
    assert (slow.is_silent, slow.unrouted) == (True, 1)

    monkeypatch.undo()
    slow = switches.counters()[0]
    assert (slow.is_silent, slow.unrouted) == (False, 3)
    switches.close()
    channel.close()


def test_control_frames_are_no_packets_that_come_in_or_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = SCENARIO.tree
    kernel = {
        interface_name(tree, switch, port): InterfaceCounts(sent=10, received=20)
        for switch in range(tree.switches)
        for port in tree.ports(switch)
    }
    monkeypatch.setattr(InterfaceBooks, "read", lambda *_: kernel)

    def counters(_path: Path, ports: Mapping[int, InterfaceCounts]) -> SwitchCounters:
        told = PortCounters(control_sent=2, control_received=3)
        return SwitchCounters(dict.fromkeys(ports, told), unrouted=0)

    with socket.socket() as channel:
        target = replace(SOFTSWITCH, counters=counters)
        for switch_counters in Switches(SCENARIO, target, tmp_path, Children(channel)).counters():
            assert (switch_counters.arrived, switch_counters.left) == (
                17 * len(switch_counters.ports),
                8 * len(switch_counters.ports),
            )
