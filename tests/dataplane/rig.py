"""Switches under test: real programs, programmed by the controller through P4Runtime messages.

Bytes in, bytes out.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import p4src
from controller.entries import Entry
from controller.fabric_controller import FabricController, Step
from controller.pipeline import Pipeline
from controller.session import InProcess, Session
from emulation.virtual.control import SwitchDraws
from fattree.experiment.model import Fabric, Scenario
from fattree.shape.addressing import host_ip, host_mac, switch_name
from fattree.shape.topology import FatTree
from hostagent.packets import AckFrames, DataFrames, Ends
from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.control.switch import Pending, Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError
from tests.dataplane import bmv2_switch

CPU_PORT = 510


@lru_cache
def compiled(program: str | Path, max_uplinks: int = 8) -> tuple[bytes, Pipeline]:
    """Return the BMv2 JSON and the pipeline of a program of ours, or of a file."""
    path = program if isinstance(program, Path) else p4src.path(program)
    result = compile_file(path, (p4src.INCLUDE,), {"MAX_UPLINKS": str(max_uplinks)})
    return json.dumps(result.json).encode(), Pipeline(result.p4info)


def scenario(policy: str, k: int = 4, seed: int = 1, **sections: Any) -> Scenario:
    """Return a scenario of one load balancer."""
    return Scenario(
        policy=policy, seed=seed, fabric=Fabric(k=k, **sections.pop("fabric", {})), **sections
    )


def ends(tree: FatTree, source: int, destination: int) -> Ends:
    """Return the addresses of two hosts."""
    return Ends(
        host_mac(tree, source),
        host_mac(tree, destination),
        host_ip(tree, source),
        host_ip(tree, destination),
    )


def data(
    tree: FatTree,
    source: int,
    destination: int,
    label: int = 1000,
    psn: int = 0,
    payload: int = 256,
) -> bytes:
    """Return a data frame between two hosts."""
    return DataFrames(ends(tree, source, destination), 7, payload).frame(label, psn)


def ack(tree: FatTree, source: int, destination: int, label: int = 1000, psn: int = 0) -> bytes:
    """Return an ACK frame between two hosts; the source is the receiver of the data."""
    return AckFrames(ends(tree, source, destination), 7).frame(label, psn, False, psn + 1)


def internet_sum(header: bytes) -> int:
    """Return the ones' complement sum of a header: 0xFFFF where its checksum is right."""
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, len(header), 2))
    return total % 0xFFFF or (0xFFFF if total else 0)


def with_checksum(frame: bytes, ip_at: int = 14) -> bytes:
    """Return a frame with the right checksum in its IPv4 header at `ip_at`."""
    blank = frame[ip_at : ip_at + 10] + b"\0\0" + frame[ip_at + 12 : ip_at + 20]
    checksum = 0xFFFF - internet_sum(blank)
    return frame[: ip_at + 10] + checksum.to_bytes(2, "big") + frame[ip_at + 12 :]


def changed(frame: bytes, offset: int, value: bytes) -> bytes:
    """Return a frame with other bytes at an offset and a right checksum."""
    return with_checksum(frame[:offset] + value + frame[offset + len(value) :])


@dataclass(slots=True)
class Rig:
    """One switch of a scenario. `waiting` are the packets between its ingress and its egress."""

    scenario: Scenario
    index: int
    switch: Switch
    session: Session
    now_ps: int = 0
    waiting: list[Pending] = field(default_factory=list)

    @property
    def tree(self) -> FatTree:
        return self.scenario.tree

    def offer(self, frame: bytes, port: int = 1, length: int | None = None) -> int | None:
        """Let a frame arrive and wait at its output; return the port, None where it was dropped."""
        if bmv2_switch.IS_WANTED and self.waiting:
            pytest.skip("BMv2's queues cannot be held still")
        copies = self.switch.ingress(port, frame, length)
        assert len(copies) <= 1
        self.waiting += copies
        return copies[0].egress_port if copies else None

    def leave(self, index: int = 0) -> tuple[int, bytes]:
        """Let a waiting packet leave (the first by default); return the port and the frame."""
        pending = self.waiting.pop(index)
        behind = sum(packet.egress_port == pending.egress_port for packet in self.waiting)
        (sent,) = self.switch.egress(pending, behind)
        return sent.port, sent.frame

    def through(
        self, frame: bytes, port: int = 1, length: int | None = None
    ) -> tuple[int, bytes] | None:
        """Let a frame pass a switch with empty queues.

        Return the port and the frame, or None.
        """
        assert not self.waiting
        return None if self.offer(frame, port, length) is None else self.leave()

    def port_of(self, frame: bytes, port: int = 1) -> int | None:
        """Return the port through which a frame passes."""
        sent = self.through(frame, port)
        return sent and sent[0]

    def apply(self, steps: Iterable[Step]) -> None:
        """Send the steps that concern this switch."""
        for step in steps:
            if step.switch == self.index:
                self.session.write(step.changes)

    def entries(self, table: str) -> list[Entry]:
        """Read a table back."""
        return self.session.read(table)


def program_of(scenario: Scenario) -> str | Path:
    """Return the program of a scenario's switches: the user's file, or the name of ours."""
    return Path(scenario.program) if scenario.program else scenario.scheme.program


def switch_of(
    scenario: Scenario, index: int, random: Callable[[int, int], int] | None = None
) -> Rig:
    """Return a switch with its program and empty tables."""
    config, pipeline = compiled(program_of(scenario))
    if bmv2_switch.IS_WANTED:
        return _bmv2_of(scenario, index, random)
    draws = random or SwitchDraws(scenario.seed, index)
    ports = scenario.tree.ports(index)
    switch = Switch(index + 1, lambda: 0, draws, ports, cpu_port=CPU_PORT)
    service = InProcess(P4RuntimeService(switch), StatusError)
    session = Session(service, pipeline, index + 1, switch_name(scenario.tree, index))
    session.open()
    session.push(config)
    return Rig(scenario, index, switch, session)


def need_our_draws() -> None:
    """Skip a test that foresees random numbers where the switch draws its own."""
    if bmv2_switch.IS_WANTED:
        pytest.skip("BMv2 draws its own random numbers")


def _bmv2_of(scenario: Scenario, index: int, random: Callable[[int, int], int] | None) -> Rig:
    """Return a BMv2 process with its program and empty tables."""
    if random is not None:
        need_our_draws()
    config, pipeline = compiled(program_of(scenario))
    switch: Any = bmv2_switch.Bmv2Switch(index + 1, scenario.tree.ports(index))
    session = bmv2_switch.connect(
        switch, config, pipeline, index + 1, switch_name(scenario.tree, index)
    )
    return Rig(scenario, index, switch, session)


def rig(scenario: Scenario, index: int, random: Callable[[int, int], int] | None = None) -> Rig:
    """Return a switch with the first plan of its scenario."""
    bench = switch_of(scenario, index, random)
    bench.apply(controller_of(scenario).start())
    return bench


def controller_of(scenario: Scenario, failed: Iterable[int] = ()) -> FabricController:
    """Return a controller for a scenario."""
    return FabricController(scenario, compiled(program_of(scenario))[1], failed)


class FabricRig:
    """All switches of a scenario; packets cross it singly, through empty queues."""

    def __init__(self, scenario: Scenario, failed: Iterable[int] = ()) -> None:
        self.scenario = scenario
        self.tree = scenario.tree
        self.rigs = [switch_of(scenario, index) for index in range(self.tree.switches)]
        self.controller = controller_of(scenario, failed)
        self.apply(self.controller.start())

    def apply(self, steps: Iterable[Step]) -> None:
        """Send the steps in order."""
        for step in steps:
            self.rigs[step.switch].session.write(step.changes)

    def carry(self, source: int, frame: bytes) -> tuple[list[tuple[int, int]], bytes | None]:
        """Carry a frame from a host.

        Return the (switch, output port) pairs that it passed and the frame that arrived, or None.
        """
        hops: list[tuple[int, int]] = []
        switch, port = self.tree.access(source)
        while True:
            sent = self.rigs[switch].through(frame, port)
            if sent is None:
                return hops, None
            hops.append((switch, sent[0]))
            frame = sent[1]
            far = self.tree.neighbour(switch, sent[0])
            if far is None:
                return hops, frame
            switch, port = far

    def host_reached(self, hops: list[tuple[int, int]]) -> int:
        """Return the host behind the last hop."""
        edge, port = hops[-1]
        return self.tree.host_at(edge, port)
