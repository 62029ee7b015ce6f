"""`[packets]`, `[load_balancer]` and `[transport]`: what is sent, where, and how fast."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from fattree.sections.base import MOST_RTTS, Section

Congestion = Literal["fixed", "swift", "lazy_swift", "mswift", "nscc"]


class Packets(Section):
    """What a packet of each class occupies on the wire."""

    # Below 256 bytes switches would take data for ACKs (design, decision 2). The headers are our
    # packets' 58 bytes and Ethernet's FCS.
    payload_bytes: Annotated[int, Field(ge=256, le=65_000)] = 4096
    header_bytes: Annotated[int, Field(ge=62, le=1_000)] = 62
    ack_bytes: Annotated[int, Field(ge=1, le=65_000)] = 64
    gap_bytes: Annotated[int, Field(ge=0, le=1_000)] = 20
    tunnel_bytes: Annotated[int, Field(ge=0, le=1_000)] = 0


class LoadBalancer(Section):
    """Options of the schemes; which one runs is `Scenario.policy`."""

    # Simple RR's: the paper's text in "Ofan" has one pointer for each next-hop group, while its
    # theory and figures (perfect uplinks, linear queues) are those of one class by itself.
    rr_pointer: Literal["per_class", "shared"] = "per_class"
    # The paper's text in "Ofan" gives each pointer an order of its own, its appendix F each pod.
    schedule_orders: Literal["per_pod", "per_pointer"] = "per_pod"
    # Unless given, those of the fabric (`forwarding.consolidation`).
    edge_pointers: Literal["pod", "edge", "host"] | None = None
    agg_pointers: Literal["pod", "edge", "host"] | None = None
    queue_staleness_ns: Annotated[float, Field(ge=0, le=10**9)] = 0
    bins_percent: tuple[float, float, float] = (5, 10, 20)
    ecn_percent: Annotated[float, Field(gt=0, le=100)] | None = None
    # The last ACKs' marks are bits of one int64.
    plb_acks: Annotated[int, Field(ge=1, le=60)] = 10
    plb_percent: Annotated[int, Field(ge=1, le=100)] = 40
    plb_gaps: Annotated[int, Field(ge=1, le=10**6)] = 10
    # As in REPS's public implementations; at this scale a flow that freezes stays so to its end.
    freeze_us: Annotated[float, Field(ge=0, le=10**9)] = 10_000
    reps_explore_packets: Annotated[int, Field(ge=0, le=10**6)] = 16

    @field_validator("edge_pointers")
    @classmethod
    def _one_order_per_pointer(cls, level: str | None, others: ValidationInfo) -> str | None:
        if level == "pod" and others.data.get("schedule_orders") == "per_pointer":
            raise ValueError(
                '"pod" needs schedule_orders = "per_pod": '
                "a pod's edges share a pointer, so they share an order"
            )

        return level


class Transport(Section):
    """Loss recovery, congestion control and pacing."""

    recovery: Literal["erasure", "sack"] = "erasure"
    congestion: Congestion = "fixed"
    # A bitmap has 1,024 bits, so the highest number is at most 1,023 above the lowest missing one.
    sack_threshold: Annotated[int, Field(ge=1, le=1023)] = 32
    # No packet times out sooner, in zero-load RTTs: with one instead of three, rttvar shrinks below
    # what a longer queue adds, and REPS freezes without any failure.
    timer_floor_rtt: Annotated[float, Field(ge=0, le=MOST_RTTS)] = 3
    pacing_jitter: Annotated[float, Field(ge=0, le=1)] = 0
    random_phases: bool = True
    rate_limit: Annotated[float, Field(gt=0, le=1)] | None = None
    # Unless given, as the traffic is (`Settings.is_shared_actively`, `Settings.tells_shares`).
    sharing: Literal["static", "active"] | None = None
    receiver_share: bool | None = None
    trimming: bool = False
    packets_per_ack: Annotated[int, Field(ge=1, le=64)] = 1
