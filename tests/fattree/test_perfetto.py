"""Perfetto traces of flows, read by Perfetto's own messages."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import polars as pl
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

from fattree.demand.workloads.file import About, write_workload
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.generators.building import Builder
from fattree.records.perfetto import trace
from sim import flow_frame, run

Slice = tuple[str, int, int, int]


def read(data: bytes) -> tuple[dict[int, tuple[str, int]], dict[int, list[Slice]]]:
    """Return the tracks (name, parent), and each track's slices (name, begin, end, flow)."""
    read = Trace()
    assert read.ParseFromString(data) == len(data)
    assert read.packet[0].sequence_flags == TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    tracks: dict[int, tuple[str, int]] = {}
    slices: dict[int, list[Slice]] = defaultdict(list)
    open_slices: dict[int, tuple[str, int, int]] = {}
    for packet in read.packet:
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks
            tracks[track.uuid] = track.name, track.parent_uuid
        elif packet.HasField("track_event"):
            event = packet.track_event
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                # Slices of a track do not overlap.
                assert event.track_uuid not in open_slices
                notes = {note.name: note.int_value for note in event.debug_annotations}
                open_slices[event.track_uuid] = event.name, packet.timestamp, notes["flow"]
            else:
                assert event.type == TrackEvent.TYPE_SLICE_END
                name, begin, flow = open_slices.pop(event.track_uuid)
                slices[event.track_uuid].append((name, begin, packet.timestamp, flow))

    assert not open_slices
    return tracks, slices


def test_a_step_has_a_row_for_each_host_and_a_slice_for_each_flow(tmp_path: Path) -> None:
    # Two computations with transfers behind them, of which two leave a host at once.
    builder = Builder()
    computed = builder.compute(0, 5_000_000)
    arrived = builder.send(0, 5, 40_000, [computed])
    builder.send(0, 9, 40_000, [computed])
    builder.send(5, 0, 9_000, [builder.compute(5, 3_000_000, [arrived])])
    path = tmp_path / "graph.parquet"
    write_workload(path, builder.graph(), About(ranks=16))
    collective = Collective(matrix="workload", file=str(path))
    flows = flow_frame(run(Scenario(fabric=Fabric(k=4), collective=collective)))
    tracks, slices = read(trace(flows))
    names = sorted(name for name, _ in tracks.values())
    assert names == ["computes", "computes", "h0_0_0", "h1_0_1", "ofan, seed 1", *["sends"] * 3]
    assert sorted(flow for track in slices.values() for *_, flow in track) == list(
        range(len(flows))
    )
    for uuid, track in slices.items():
        kind, host = tracks[uuid]
        host_name, of_run = tracks[host]
        assert tracks[of_run] == ("ofan, seed 1", 0)
        # In order, one after the other.
        assert all(end <= begin for (*_, end, _), (_, begin, *_) in pairwise(track))
        for name, begin, end, flow in track:
            row = flows.row(flow, named=True)
            assert row["source"] == host_name
            assert (begin, end) == (row["start_ps"] // 1000, row["done_ps"] // 1000)
            is_computation = row["packets"] == 0
            assert kind == ("computes" if is_computation else "sends")
            assert name == ("computes" if is_computation else f"to {row['destination']}")


def test_runs_stand_below_each_other() -> None:
    scenarios = [
        Scenario(policy=policy, fabric=Fabric(k=2), collective=Collective(message_bytes=5000))
        for policy in ("ofan", "flow")
    ]
    tracks, _ = read(trace(pl.concat(flow_frame(run(scenario)) for scenario in scenarios)))
    assert [name for name, parent in tracks.values() if parent == 0] == [
        "ofan, seed 1",
        "flow, seed 1",
    ]


def test_numbers_of_any_size_are_written() -> None:
    flows = flow_frame(run(Scenario(fabric=Fabric(k=2), collective=Collective(message_bytes=1))))
    for shift in (0, 7, 14, 35, 52):
        moved = flows.with_columns(flows["start_ps"] * 0, flows["done_ps"] * 0 + (1000 << shift))
        _, slices = read(trace(moved))
        assert {end for track in slices.values() for _, _, end, _ in track} == {1 << shift}
