"""A flow's sender, by the scenario's settings."""

from collections.abc import Callable

from fattree.experiment.model import Scenario
from tests.naive.dcqcn import COUNTER_BYTES, DcqcnRate
from tests.naive.go_back_n import GoBackN
from tests.naive.nscc import NsccWindow
from tests.naive.sack import Sack
from tests.naive.transport import (
    MOST_REMEMBERED,
    PARTS,
    PATIENCE,
    Congestion,
    Erasure,
    FixedRate,
    Memory,
    Pacer,
    Recovery,
    SwiftWindow,
    Timer,
    places,
)
from tests.naive.wire import Wire

SWIFT_QUEUE_BYTES = 113_000


def threshold(packets: int | None, congestion: Congestion) -> int | Callable[[], int]:
    """Return how many packets above a hole make it a loss, a number or a rule."""
    if packets is None and isinstance(congestion, NsccWindow):
        return congestion.reordering

    return packets or 32


def recovery(scenario: Scenario, flow: int, packets: int, gap_ps: int, hops: int) -> Recovery:
    """Return the sender of a flow, by the scenario's settings."""
    wire, options = Wire(scenario), scenario.transport
    floor_ps = round(options.timer_floor_rtt * wire.zero_load_rtt_ps)
    memory = Memory(places(scenario, packets, gap_ps))
    pacer = Pacer(scenario, flow, gap_ps)
    if options.congestion == "dcqcn":
        pacer.dcqcn = DcqcnRate(max(1, COUNTER_BYTES // wire.data_bytes))
    timer = Timer(wire.zero_load_rtt_ps, floor_ps, options.packets_per_ack - 1, pacer)
    if options.recovery == "erasure":
        return Erasure(packets, memory, timer, pacer)
    if options.recovery == "go_back_n":
        return GoBackN(packets, memory, timer, pacer)

    base_ps = wire.zero_load_rtt_ps * hops // wire.longest_path
    congestion: Congestion = FixedRate()
    if options.congestion == "nscc":
        congestion = NsccWindow(
            wire.rate_bps, wire.zero_load_rtt_ps, base_ps, gap_ps, trims=options.trimming
        )
    elif options.congestion in PATIENCE:
        most_holes, most_delays = PATIENCE[options.congestion]
        whole_ps = wire.zero_load_rtt_ps + wire.sending_ps(SWIFT_QUEUE_BYTES)
        target_ps = whole_ps * hops // wire.longest_path
        window = min(max(target_ps * PARTS // gap_ps, PARTS), MOST_REMEMBERED * PARTS)
        most_delays = min(most_delays, memory.places)
        congestion = SwiftWindow(target_ps, timer, most_holes, most_delays, window)
    return Sack(
        packets,
        threshold(options.sack_threshold, congestion),
        base_ps,
        memory,
        timer,
        pacer,
        congestion,
        trims=options.trimming,
    )
