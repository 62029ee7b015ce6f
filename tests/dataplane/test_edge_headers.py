"""A program's header between edges: the bytes on each link, and hosts' frames without it."""

from pathlib import Path
from typing import Any

import pytest

from emulation.programs.probes import frame as probe_frame
from fattree.experiment.model import Scenario
from tests.dataplane import bmv2_switch
from tests.dataplane.rig import CPU_PORT, FabricRig, ack, data, internet_sum
from tests.parity.edge_headers import HEADER_BYTES, counting
from tests.parity.probing import probing

ETHERTYPE = bytes.fromhex("88b6")


@pytest.fixture
def fabric(tmp_path: Path) -> FabricRig:
    return FabricRig(scenario(tmp_path))


def scenario(folder: Path, **tables: Any) -> Scenario:
    program = str(counting(folder))
    settings = {"policy": "ofan", "fabric": {"k": 4}, "program": program}
    return Scenario.model_validate({**settings, **tables})


def carried(fabric: FabricRig, source: int, frame: bytes) -> list[bytes]:
    """Carry a frame from a host; return it as it is on each link behind a switch."""
    frames = []
    switch, port = fabric.tree.access(source)
    while True:
        sent = fabric.rigs[switch].through(frame, port)
        assert sent is not None
        frame = sent[1]
        frames.append(frame)
        far = fabric.tree.neighbour(switch, sent[0])
        if far is None:
            return frames

        switch, port = far.switch, far.port


# Hosts of another pod, of another edge of the pod, and of the same edge.
@pytest.mark.parametrize(("destination", "links"), [(9, 4), (2, 2), (1, 0)])
@pytest.mark.parametrize("build", [data, ack])
def test_links_between_switches_alone_have_the_header(
    fabric: FabricRig, build: Any, destination: int, links: int
) -> None:
    frame = build(fabric.tree, 0, destination)
    *between, last = carried(fabric, 0, frame)

    assert len(between) == links
    for number, longer in enumerate(between, start=1):
        assert longer[12:14] == ETHERTYPE and len(longer) == len(frame) + HEADER_BYTES
        uplink, counted, group = longer[14], longer[15], int.from_bytes(longer[16:18], "big")
        assert uplink in (3, 4) and counted == number and group == int(destination == 9) * 3 + 1
        assert internet_sum(longer[18:38]) == 0xFFFF

    # A hop takes 1 from TTL, and nothing else of a host's frame changes but its checksum.
    assert last[:22] == frame[:22] and last[26:] == frame[26:]
    assert last[22] == frame[22] - links - 1


def test_a_host_cannot_bring_a_header_of_its_own(fabric: FabricRig) -> None:
    frame = data(fabric.tree, 0, 9)
    brought = frame[:12] + ETHERTYPE + b"\7\7\0\7" + frame[14:]
    (_, sent) = fabric.rigs[0].through(brought, 1) or (0, b"")
    assert len(sent) == len(brought) and sent[15] == 1


PROBE = bytes.fromhex("88b5")


def test_a_host_cannot_send_a_probe(tmp_path: Path) -> None:
    fabric = FabricRig(scenario(tmp_path, program=str(probing(tmp_path))))
    for destination in (9, 2):
        frame = data(fabric.tree, 0, destination)
        brought = frame[:12] + PROBE + b"\7\7\7" + frame[14:]
        # The edge puts a header of its own on, of data: one link, and the tag 9.
        (_, sent) = fabric.rigs[0].through(brought, 1) or (0, b"")
        assert sent[12:17] == ETHERTYPE + b"\1\0\11" and len(sent) == len(brought)


def test_a_probe_of_an_edge_is_sent_on_answered_and_taken(tmp_path: Path) -> None:
    if bmv2_switch.IS_WANTED:
        pytest.skip("packets come to BMv2's CPU port from a controller alone")

    of = scenario(tmp_path, program=str(probing(tmp_path)))
    fabric = FabricRig(of)
    between = carried_probe(fabric, probe_frame(of, 0, 4), 0)
    # Four links to the first edge of pod 2, and four back.
    assert [frame[14] for frame in between] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert {frame[12:14] for frame in between} == {PROBE}
    assert {frame[15:17] for frame in between} == {b"\0\7"}
    # From the first host of edge 0 to that of edge 4, and back, marked as an answer.
    first, second = bytes((10, 0, 0, 2)), bytes((10, 2, 0, 2))
    assert {frame[29:37] for frame in between[:4]} == {first + second}
    assert {frame[29:37] for frame in between[4:]} == {second + first}
    assert [frame[21:23] for frame in between] == 4 * [b"\0\0"] + 4 * [b"\0\1"]
    assert all(internet_sum(frame[17:37]) == 0xFFFF for frame in between)


def carried_probe(fabric: FabricRig, frame: bytes, edge: int) -> list[bytes]:
    """Carry a probe from an edge; return it as it is on each link."""
    frames = []
    switch, port = edge, CPU_PORT
    while (sent := fabric.rigs[switch].through(frame, port)) is not None:
        frame = sent[1]
        frames.append(frame)
        far = fabric.tree.neighbour(switch, sent[0])
        assert far is not None
        switch, port = far.switch, far.port

    return frames
