"""`[packets]`, `[load_balancer]` and `[transport]`: packets, their paths and their rates."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from fattree.experiment.base import MOST_RTTS, Section, only_on, wrong

Congestion = Literal["fixed", "swift", "lazy_swift", "mswift", "nscc", "dcqcn"]


class Packets(Section):
    """The bytes that a packet of each class occupies on the wire."""

    # Below 256 bytes switches would take data for ACKs (design, decision 2). The headers are our
    # packets' 58 bytes and Ethernet's FCS.
    payload_bytes: Annotated[int, Field(ge=256, le=65_000)] = 4096
    """The payload of a full data packet; a message's last packet has what is left. On Mininet at
    most 8,956, its links' limit.
    """
    header_bytes: Annotated[int, Field(ge=62, le=1_000)] = 62
    """The size of a data packet's headers on the wire, FCS included."""
    ack_bytes: Annotated[int, Field(ge=1, le=65_000)] = 64
    """The size of an ACK on the wire."""
    gap_bytes: Annotated[int, Field(ge=0, le=1_000)] = 20
    """Preamble and gap, which occupy a link after every packet."""
    tunnel_bytes: Annotated[int, Field(ge=0, le=1_000)] = 0
    """The bytes that the header with the path adds to every packet: 20 for Host DR, 40 for MRC over
    SRv6.
    """


class LoadBalancer(Section):
    """Options of the schemes; which one runs is `Scenario.policy`."""

    # Simple RR's: the paper's text in "Ofan" has one pointer for each next-hop group, while its
    # theory and figures (perfect uplinks, linear queues) are those of one class by itself.
    rr_pointer: Literal["per_class", "shared"] = "per_class"
    """Simple RR: a pointer per next-hop group and class, or one pointer for both classes."""
    # The paper's text in "Ofan" gives each pointer an order of its own, its appendix F each pod.
    schedule_orders: Literal["per_pod", "per_pointer"] = "per_pod"
    """Ofan: one random order of the schedule for all edges of a pod, or an order for every pointer.
    """
    # Unless given, those of the fabric (`forwarding.consolidation`).
    edge_pointers: Literal["pod", "edge", "host"] | None = None
    """Ofan: an edge switch has a pointer for each destination pod, edge or host; by default edge,
    with parallel links host.
    """
    agg_pointers: Literal["pod", "edge", "host"] | None = None
    """Ofan: the same for aggregation switches; by default pod, with parallel links host."""
    queue_staleness_ns: Annotated[float, Field(ge=0, le=10**9), only_on("sim")] = 0
    """JSQ and Switch Pkt AR: the age of the queue lengths that switches read."""
    bins_percent: tuple[float, float, float] = (5, 10, 20)
    """Switch Pkt AR: the bounds of its bins of queue lengths, in percent of the threshold."""
    ecn_percent: Annotated[float, Field(gt=0, le=100)] | None = None
    """The queue from which on packets are marked, in percent of the threshold; by default the load
    balancer's value. If it has none, 20 with NSCC and 12.5 with DCQCN.
    """
    ecn_full_percent: Annotated[float, Field(gt=0, le=100)] | None = None
    """The queue from which on all packets are marked, in percent of the threshold. Between the two
    bounds a packet's chance grows to `ecn_chance`. By default equal to `ecn_percent`, with DCQCN
    four times as much (100 at most).
    """
    ecn_chance: Annotated[float, Field(gt=0, le=1)] = 0.2
    """The chance of a mark just below `ecn_full_percent`."""
    # The last ACKs' marks are bits of one int64.
    plb_acks: Annotated[int, Field(ge=1, le=60)] = 10
    """Flowlets: the number of last ACKs by which a path is judged."""
    plb_percent: Annotated[int, Field(ge=1, le=100)] = 40
    """Flowlets: the share of marked ACKs from which on a path is bad."""
    plb_gaps: Annotated[int, Field(ge=1, le=10**6)] = 10
    """Flowlets: the number of gaps after which a flow leaves a bad path; plus up to two, at random.
    """
    # As in REPS's public implementations; at this scale a flow that freezes stays so to its end.
    freeze_us: Annotated[float, Field(ge=0, le=10**9)] = 10_000
    """REPS: how long a flow with losses uses only labels that worked."""
    reps_explore_packets: Annotated[int, Field(ge=0, le=10**6)] = 16
    """REPS: the number of packets with new labels when a freeze ends."""
    connections: Literal["message", "pair"] = "message"
    """REPS, UET Bitmap and MRC: who remembers paths. `message`: each message begins anew. `pair`:
    the messages of a run from one host to another share labels, penalties and values, as those of a
    queue pair; round-trip times and windows stay a message's. Not with erasure coding.
    """

    @field_validator("bins_percent")
    @classmethod
    def _bins_rise(cls, bounds: tuple[float, ...]) -> tuple[float, ...]:
        if list(bounds) != sorted(bounds) or bounds[0] < 0:
            raise ValueError("the bounds must rise, from 0 on")

        return bounds

    @field_validator("ecn_full_percent")
    @classmethod
    def _bounds_are_in_order(cls, full: float | None, info: ValidationInfo) -> float | None:
        least = info.data.get("ecn_percent")
        if full is not None and least is not None and full < least:
            raise ValueError(f"{full:g} is below ecn_percent = {least:g}")

        return full

    @field_validator("edge_pointers")
    @classmethod
    def _one_order_per_pointer(cls, level: str | None, info: ValidationInfo) -> str | None:
        if level == "pod" and info.data.get("schedule_orders") == "per_pointer":
            raise ValueError(
                '"pod" needs schedule_orders = "per_pod": '
                "a pod's edges share a pointer, so they share an order"
            )

        return level


class Transport(Section):
    """Loss recovery, congestion control and pacing."""

    recovery: Literal["erasure", "sack", "go_back_n"] = "erasure"
    """How lost packets are recovered: by an ideal erasure code (any packets in the right number),
    by selective ACKs, or by go-back-N, whose receivers take packets only in order
    (`docs/lossless.md`).
    """
    # Beyond that no sender is ahead of a missing packet: its ring of packets has 1,024.
    reorder_packets: Annotated[int, Field(ge=0, le=1023)] = 0
    """Go-back-N: how many packets beyond the next in order a NIC keeps, to deliver them in order
    (`docs/lossless.md`).
    """
    # A sender hears of a gap an RTT after it began, and times out after three by itself.
    reorder_timeout_rtt: Annotated[float, Field(gt=0, le=MOST_RTTS)] = 1
    """Go-back-N: how old a gap is, in zero-load RTTs, when the next packet behind it has it
    reported.
    """
    congestion: Congestion = "fixed"
    """The hosts' rate: fixed, or set by one of five congestion controls (`docs/congestion.md`;
    DCQCN: `docs/lossless.md`).
    """
    # A bitmap has 1,024 bits, so the highest number is at most 1,023 above the lowest missing.
    sack_threshold: Annotated[int, Field(ge=1, le=1023)] | None = None
    """SACK: a missing packet counts as lost when so many later packets have arrived. By default 32;
    with `congestion = "nscc"` one and a half windows, at least 5 packets and at most the largest
    window.
    """
    # No packet times out sooner, in zero-load RTTs: with 1 instead of 3, rttvar shrinks below the
    # delay that a longer queue adds, and REPS freezes without any failure.
    timer_floor_rtt: Annotated[float, Field(ge=0, le=MOST_RTTS)] = 3
    """The shortest timeout of a packet."""
    pacing_jitter: Annotated[float, Field(ge=0, le=1)] = 0
    """The largest random delay of a packet, as a share of the gap between packets."""
    random_phases: bool = True
    """Whether hosts start at a random phase of their gap."""
    rate_limit: Annotated[float, Field(gt=0, le=1)] | None = None
    """The highest rate of hosts, as a share of the link's rate."""
    # Unless given, as the traffic is (`Settings.is_shared_actively`, `Settings.tells_shares`).
    sharing: Literal["static", "active"] | None = None
    """How flows share a host's rate: each has an equal, fixed part (`static`), or flows that are
    ready take turns, packet by packet (`active`). By default the paper's matrices are `static`;
    graphs, jobs, steps, traces, pairs and connection matrices `active` (`docs/transport.md`).
    """
    receiver_share: bool | None = None
    """With `active`: whether each ACK tells how many flows share the receiver's link; the sender
    then sends one packet of the flow in so many slots. By default true with `congestion = "fixed"`
    and without pauses: RoCE's NICs have nothing of the kind (`docs/transport.md`).
    """
    trimming: Annotated[bool, only_on("virtual", "sim")] = False
    """Whether switches with a full queue cut data packets to their headers and send these first;
    the receiver's NACK asks for the packets again at once (`docs/transport.md`).
    """
    acks_first: Annotated[bool, only_on("virtual", "sim")] = False
    """With `trimming`: whether ACKs go before data at switches, as NACKs and cut packets do;
    by default they wait in the queue (`docs/transport.md`).
    """
    packets_per_ack: Annotated[int, Field(ge=1, le=64)] = 1
    """Receivers acknowledge each Nth packet of a flow, and at once a marked packet, a duplicate,
    the last packet, or a packet whose ACK the sender waits for (`docs/transport.md`).
    """


def refuse_small_buffers(sizes: Packets, queue_bytes: int, tunnel_bytes: int) -> None:
    """Raise ValueError where no data packet fits into a queue, or no ACK: nothing would arrive."""
    for name, size in (
        ("a packet", sizes.payload_bytes + sizes.header_bytes + tunnel_bytes),
        ("an ACK (packets.ack_bytes)", sizes.ack_bytes + tunnel_bytes),
    ):
        if 0 < queue_bytes < size:
            raise wrong(
                ("fabric", "queue_bytes"),
                f"fabric.queue_bytes = {queue_bytes} is too small for {name}, which has"
                f" {size} bytes (0: queues without a limit)",
            )
