"""Small random scenarios in which much goes wrong: ties, drops, marks, failures, stale routes."""

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from fattree.experiment.model import (
    Collective,
    Controller,
    Degraded,
    Fabric,
    FailureEvent,
    Failures,
    LoadBalancer,
    Loss,
    Packets,
    Scenario,
    Transport,
)
from fattree.policies import LEARNING, POLICIES, LabelRule
from fattree.shape.addressing import host_name, link_name, switch_name
from fattree.shape.topology import FatTree
from tests.parity.drawing import sizes

MOST_PACKETS = 400
HORIZON_PS = 10**9
FOREVER = float("inf")
# Lags of switches, in round trips.
SPREADS = ((), (), (0, 0.7), (0.01, 1.5, 4))
CHAINED = ("ring", "hierarchical_ring")


# A switch with hosts, one without, a host's link that flaps, and links that lose packets.
HOSTS_TOO = Failures(
    events=(
        FailureEvent(switch="edge1_0", down_ns=2_000, up_ns=4_000),
        FailureEvent(switch="core0_0", down_ns=3_000),
        FailureEvent(host="h0_0_1", down_ns=500, up_ns=900, times=5, every_ns=1_000),
    ),
    losses=(
        Loss(link="edge2_0-agg2_1", share=0.05),
        Loss(host="h3_0_0", share=0.05),
        Loss(switch="core1_1", share=0.01),
    ),
    convergence_rtt=1,
)

# One that both directions of a core link share for a while, one direction, a host and a whole agg.
SLOW = Failures(
    degraded=(
        Degraded(link="agg0_0-core0_0", rate=0.25, at_ns=1_000, until_ns=8_000),
        Degraded(link="edge1_0-agg1_1", rate=0.37, direction="down"),
        Degraded(host="h0_0_1", rate=0.5),
        Degraded(switch="agg2_1", rate=0.7, at_ns=2_000),
    ),
    convergence_rtt=0.5,
)

# NICs with reordering buffers that are too small, and with too short a patience.
IN_ORDER = Transport(recovery="go_back_n", reorder_packets=8, reorder_timeout_rtt=0.2)

# All to one over links without delay: queues of many target delays, which NSCC cuts for.
NSCC_INCAST: dict[str, Any] = {
    "fabric": Fabric(k=4, latency_ns=1, queue_bytes=0),
    "collective": Collective(
        matrix="pairs", message_bytes=59 * 4096 + 1, pairs=tuple((host, 0) for host in range(1, 16))
    ),
    "transport": Transport(recovery="sack", congestion="nscc", timer_floor_rtt=50),
}


# All to host 0, and queues so short that most is cut.
TRIMMING: dict[str, Any] = {
    "fabric": Fabric(k=4, queue_bytes=30_000),
    "collective": Collective(
        matrix="pairs",
        message_bytes=23 * 4096 + 3000,
        pairs=tuple((host, 0) for host in range(1, 16)),
    ),
}

# So on, over links that become slow and fast again while queues are full, again and again: a
# packet that gives way starts at another rate than foreseen, slower or faster.
TRIMMING_SLOW: dict[str, Any] = TRIMMING | {
    "failures": Failures(
        degraded=(
            *SLOW.degraded,
            *(
                Degraded(switch=f"agg{pod}_{agg}", rate=rate, at_ns=at_ns, until_ns=at_ns + 1_000)
                for at_ns in range(1_000, 20_000, 2_000)
                for pod, agg, rate in ((0, 0, 0.1), (0, 1, 0.3), (2, 1, 0.15))
            ),
            Degraded(host="h0_0_0", rate=0.6),
        ),
        convergence_rtt=0.5,
    )
}


@st.composite
def scenarios(draw: Any, policy: str) -> Scenario:
    """Draw a scenario: a small fabric, and at most about MOST_PACKETS data packets."""
    shape = draw(shapes())
    tree = Fabric(**shape).tree
    machines = Fabric(**{**shape, "planes": None}).tree
    payload = draw(st.sampled_from((4096, 1000, 256)))
    fabric = draw(fabrics(shape, payload))
    broken = draw(failures(tree))
    transport = allowed(policy, draw(transports(can_trim=fabric.queue_bytes > 0)))
    return Scenario(
        policy=policy,
        seed=draw(st.one_of(st.integers(0, 50), st.integers(0, 2**63 - 1))),
        fabric=fabric,
        packets=Packets(
            payload_bytes=payload,
            ack_bytes=draw(st.sampled_from((64, 200))),
            gap_bytes=draw(st.sampled_from((20, 0, 100))),
            tunnel_bytes=draw(st.sampled_from((0, 20))),
        ),
        load_balancer=draw(options(transport)),
        collective=draw(collectives(machines, payload, POLICIES[policy].subflows)),
        transport=transport,
        failures=broken,
        controller=Controller(spread_rtt=draw(st.sampled_from(SPREADS))),
    )


@st.composite
def shapes(draw: Any) -> dict[str, Any]:
    """Draw counts: half the time a k-ary fat-tree, else any folded Clos; at times in planes."""
    planes = draw(st.sampled_from((None, None, None, 2, 3)))
    if draw(st.booleans()):
        return {"k": draw(st.sampled_from((4, 2) if planes else (4, 2, 6))), "planes": planes}

    counts = {
        "edges_per_pod": draw(st.integers(1, 3)),
        "hosts_per_edge": draw(st.integers(1, 4)),
        "aggs_per_pod": draw(st.integers(1, 3)),
        "edge_agg_links": draw(st.sampled_from((1, 1, 2, 3))),
    }
    pods = draw(st.integers(1, 3))
    if pods == 1:
        assume(counts["edges_per_pod"] * counts["hosts_per_edge"] > 1)
        return counts | {"planes": planes}

    return counts | {
        "planes": planes,
        "pods": pods,
        "cores_per_agg": draw(st.integers(1, 3)),
        "agg_core_links": draw(st.sampled_from((1, 1, 2, 3))),
    }


@st.composite
def fabrics(draw: Any, shape: dict[str, Any], payload: int) -> Fabric:
    # Without cores nothing leads to them.
    has_cores = bool(shape.get("k") or shape.get("cores_per_agg"))
    core_gbps = draw(st.sampled_from((None, None, 200, 800)))
    core_latency_ns = draw(st.sampled_from((None, None, 2_000, 1)))
    return Fabric(
        **shape,
        plane_use=draw(st.sampled_from((None, "spray", "keep"))) if shape.get("planes") else None,
        rate_gbps=draw(st.sampled_from((800, 400, 333, 100))),
        latency_ns=draw(st.sampled_from((500, 1, 0.3, 83.56, 10_000))),
        edge_agg_gbps=draw(st.sampled_from((None, None, 400, 777))),
        agg_core_gbps=core_gbps if has_cores else None,
        edge_agg_latency_ns=draw(st.sampled_from((None, None, 700, 0.7))),
        agg_core_latency_ns=core_latency_ns if has_cores else None,
        queue_bytes=draw(
            st.sampled_from(
                (800_000, 0, 12 * (payload + 62), 5 * (payload + 62) + 64, 2 * (payload + 62))
            )
        ),
        threshold_bytes=draw(st.sampled_from((None, 20 * (payload + 62), 5_000))),
    )


def virtual(drawn: Scenario) -> Scenario:
    """Return a scenario as virtual networks have it."""
    # Their programs see queues as they are.
    fresh = drawn.load_balancer.model_copy(update={"queue_staleness_ns": 0})
    return drawn.model_copy(update={"load_balancer": LoadBalancer(**fresh.model_dump())})


@st.composite
def collectives(draw: Any, tree: FatTree, payload: int, subflows: int) -> Collective:
    matrix = draw(
        st.sampled_from(
            (
                "permutation",
                "inter_pod_permutation",
                "all_to_all",
                "ring",
                "hierarchical_ring",
                "pairs",
            )
        )
    )
    if matrix == "all_to_all" and tree.hosts > 30:
        matrix = "permutation"
    if matrix == "inter_pod_permutation" and tree.pods == 1:
        matrix = "permutation"
    # A ring of one server would send to itself.
    if matrix == "hierarchical_ring" and tree.edges == 1:
        matrix = "ring"
    steps = draw(st.integers(1, 3)) if matrix in CHAINED else None
    flows = tree.hosts * (tree.hosts - 1 if matrix == "all_to_all" else steps or 1) * subflows
    packets = draw(st.integers(1, max(1, min(100, MOST_PACKETS // flows))))
    ends = st.lists(st.integers(0, tree.hosts - 1), min_size=2, max_size=2, unique=True)
    incasts = st.integers(1, tree.hosts - 1).map(lambda last: [(n, 0) for n in range(1, last + 1)])
    some = st.one_of(st.lists(ends.map(tuple), min_size=1, max_size=8), incasts)
    pairs = draw(some) if matrix == "pairs" else []
    return Collective(
        matrix=matrix,
        message_bytes=draw(sizes(packets, payload)),
        steps=steps,
        pairs=tuple(pairs),
    )


@st.composite
def options(draw: Any, transport: Transport) -> LoadBalancer:
    is_erasure = transport.recovery == "erasure"
    edge_pointers = draw(st.sampled_from((None, "edge", "host", "pod")))
    return LoadBalancer(
        rr_pointer=draw(st.sampled_from(("per_class", "shared"))),
        schedule_orders="per_pod"
        if edge_pointers == "pod"
        else draw(st.sampled_from(("per_pod", "per_pointer"))),
        edge_pointers=edge_pointers,
        agg_pointers=draw(st.sampled_from((None, "pod", "edge", "host"))),
        queue_staleness_ns=draw(st.sampled_from((0, 0, 100, 1_000))),
        bins_percent=draw(st.sampled_from(((5, 10, 20), (0.5, 1.25, 30)))),
        ecn_percent=draw(st.sampled_from((None, 3.3, 50))),
        ecn_full_percent=draw(st.sampled_from((None, None, 60))),
        ecn_chance=draw(st.sampled_from((0.2, 1, 0.01))),
        plb_acks=draw(st.sampled_from((10, 1, 3))),
        plb_percent=draw(st.sampled_from((40, 1, 100))),
        plb_gaps=draw(st.sampled_from((10, 1))),
        freeze_us=draw(st.sampled_from((10_000, 1, 10))),
        reps_explore_packets=draw(st.sampled_from((16, 0, 100))),
        connections="message" if is_erasure else draw(st.sampled_from(("message", "pair"))),
    )


def allowed(policy: str, transport: Transport) -> Transport:
    """Return a transport with an ACK for every packet where the load balancer needs it."""
    rule = POLICIES[policy].label_rule
    is_heard = transport.recovery == "sack" or rule not in LEARNING
    if rule != LabelRule.PLB and is_heard:
        return transport

    return transport.model_copy(update={"packets_per_ack": 1})


@st.composite
def transports(draw: Any, can_trim: bool) -> Transport:
    recovery, congestion = draw(
        st.sampled_from(
            (
                ("erasure", "fixed"),
                ("sack", "fixed"),
                ("sack", "mswift"),
                ("sack", "nscc"),
                ("sack", "swift"),
                ("sack", "lazy_swift"),
                ("sack", "dcqcn"),
                ("erasure", "dcqcn"),
                ("go_back_n", "fixed"),
                ("go_back_n", "dcqcn"),
            )
        )
    )
    trims = can_trim and recovery != "go_back_n" and draw(st.booleans())
    return Transport(
        recovery=recovery,
        congestion=congestion,
        sack_threshold=draw(st.sampled_from((None, 32, 1, 3, 6))),
        pacing_jitter=draw(st.sampled_from((0, 0.1, 1))),
        random_phases=draw(st.booleans()),
        timer_floor_rtt=draw(st.sampled_from((3, 0, 1, 2.5))),
        rate_limit=draw(st.sampled_from((None, 0.9, 0.37))),
        trimming=trims,
        acks_first=trims and draw(st.booleans()),
        packets_per_ack=draw(st.sampled_from((1, 1, 2, 4, 64))),
        reorder_packets=draw(st.sampled_from((0, 1, 3, 32))) if recovery == "go_back_n" else 0,
        reorder_timeout_rtt=draw(st.sampled_from((1, 0.05, 0.3, 10))),
        sharing=draw(st.sampled_from((None, None, "static", "active"))),
        receiver_share=draw(st.sampled_from((None, None, True, False))),
    )


@st.composite
def failures(draw: Any, tree: FatTree) -> Failures:
    """Draw failures at a rate and by name.

    Where routes never change, links come back, so that runs end.
    """
    convergence = draw(st.sampled_from((0, 1.5, FOREVER, 0.01)))
    rate = 0 if convergence == FOREVER else draw(st.sampled_from((0, 0.05, 0.3)))
    return Failures(
        rate=rate,
        at_ns=draw(st.sampled_from((0, 2_000, 7_123))),
        events=tuple(draw(st.lists(events(tree, convergence == FOREVER), max_size=3))),
        losses=tuple(draw(st.one_of(st.just([]), st.lists(losses(tree), max_size=2)))),
        degraded=tuple(draw(st.one_of(st.just([]), st.lists(slow_links(tree), max_size=3)))),
        convergence_rtt=convergence,
        local_repair=draw(st.booleans()),
    )


@st.composite
def events(draw: Any, tree: FatTree, comes_back: bool) -> FailureEvent:
    """Draw a failure and its times; a failure that takes hosts with it comes back."""
    target = draw(places(tree))
    comes_back = comes_back or "link" not in target or draw(st.booleans())
    down_ns = draw(st.one_of(st.just(0), st.just(1_000), st.integers(0, 20_000)))
    outage_ns = draw(st.one_of(st.just(500), st.integers(1, 20_000)))
    flaps: dict[str, Any] = {}
    if comes_back and draw(st.booleans()):
        pause_ns = draw(st.integers(1, 5_000))
        flaps = {"times": draw(st.integers(2, 4)), "every_ns": outage_ns + pause_ns}

    return FailureEvent(
        **target, down_ns=down_ns, up_ns=down_ns + outage_ns if comes_back else None, **flaps
    )


@st.composite
def places(draw: Any, tree: FatTree) -> dict[str, str]:
    """Draw a link, a host's link, or a switch, by name."""
    target: dict[str, str] = draw(
        st.one_of(
            st.integers(0, tree.links - 1).map(lambda link: {"link": link_name(tree, link)}),
            st.integers(0, tree.hosts - 1).map(lambda host: {"host": host_name(tree, host)}),
            st.integers(0, tree.switches - 1).map(
                lambda switch: {"switch": switch_name(tree, switch)}
            ),
        )
    )
    return target


@st.composite
def losses(draw: Any, tree: FatTree) -> Loss:
    """Draw links that lose packets all the time."""
    return Loss(**draw(places(tree)), share=draw(st.sampled_from((0.01, 0.2))))


@st.composite
def slow_links(draw: Any, tree: FatTree) -> Degraded:
    """Draw links that are slow; a target that takes hosts with it is slow all the time."""
    target = draw(places(tree))
    has_hosts = "host" in target or target.get("switch", "").startswith("edge")
    span: dict[str, Any] = {}
    if not has_hosts:
        at_ns = draw(st.sampled_from((0, 1, 1_000, 5_000)))
        until_ns = draw(st.one_of(st.none(), st.integers(1, 20_000).map(lambda ns: at_ns + ns)))
        span = {"at_ns": at_ns, "until_ns": until_ns}

    return Degraded(
        **target,
        rate=draw(st.sampled_from((0.25, 0.5, 0.1, 0.37, 0.95))),
        direction=draw(st.sampled_from(("both", "both", "up", "down"))),
        **span,
    )
