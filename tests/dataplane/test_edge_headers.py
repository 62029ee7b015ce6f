"""A program's header between edges: the bytes on each link, and hosts' frames without it."""

from pathlib import Path
from typing import Any

import pytest

from fattree.experiment.model import Scenario
from tests.dataplane.rig import FabricRig, ack, data, internet_sum
from tests.parity.edge_headers import HEADER_BYTES, counting

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
