"""A run as data frames, a row per flow or per port, in the columns that all networks share."""

from typing import TYPE_CHECKING

from fattree.counters import PORT_COUNTERS, kept
from fattree.records import frames
from sim.runs.results import Result

if TYPE_CHECKING:
    import polars as pl


def flow_frame(result: Result) -> "pl.DataFrame":
    """Return one row per flow (`fattree.records.frames.flow_frame`)."""
    flows = result.flows
    return frames.flow_frame(
        result.scenario,
        result.scenario.balancer,
        source=flows.source,
        destination=flows.destination,
        packets=flows.packets,
        transmissions=result.transmissions,
        planned_ps=flows.start_ps,
        start_ps=result.start_ps,
        first_ps=result.first_ps,
        done_ps=result.done_ps,
    )


def port_frame(result: Result) -> "pl.DataFrame":
    """Return one row per output port of every switch (`fattree.records.frames.port_frame`)."""
    ports = result.ports
    return frames.port_frame(
        result.scenario,
        result.scenario.balancer,
        packets=ports.packets,
        bytes=ports.bytes,
        counts=kept(PORT_COUNTERS, ports),
        max_queue_bytes=ports.max_queue_bytes,
        mean_queue_bytes=ports.queue_byte_ps / max(result.end_ps, 1),
    )
