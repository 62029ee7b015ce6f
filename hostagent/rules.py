"""The rules of a scenario, for all flows."""

from typing import Any

from fattree.demand.workloads.jobs import is_in_one_plane
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.policies import LEARNING, LabelRule
from fattree.units import PS_PER_US
from hostagent.transports.state import (
    ENTROPY_VALUES,
    PSN_WINDOW,
    Congestion,
    Recovery,
    Rules,
)

# The queueing part of Swift's target: the mean that the paper's appendix H prints, of 117 KB (25 us
# at 50 Gb/s less the RTT) and 109 KB. 50 us at 100 Gb/s, which it names, would leave 547 KB.
SWIFT_QUEUE_BYTES = 113_000

# NSCC's constants are for 100 Gb/s and 12 us: this product, in bits/s times ps.
REFERENCE_BIT_PS = 100 * 10**9 * 12 * PS_PER_US

# DCQCN's counter of bytes, as published (Zhu et al., SIGCOMM 2015).
DCQCN_COUNTER_BYTES = 10_000_000

# The paper's for a permutation ("Sensitivity Analysis", loss recovery).
SACK_THRESHOLD = 32

# Lazy TCP: spraying makes holes that close by themselves, so only so many late ones in a row count.
LAZY_HOLES = 5


def rules(scenario: Scenario) -> Rules:
    """Return the rules of a run; raises ExperimentError as `refuse_unable_hosts`."""
    refuse_unable_hosts(scenario)
    options = scenario.load_balancer
    transport = scenario.transport
    congestion = Congestion[transport.congestion.upper()]
    return Rules(
        seed=scenario.seed,
        recovery=int(Recovery[transport.recovery.upper()]),
        congestion=int(congestion),
        label_rule=int(LabelRule.OWN if scenario.host_rule else scenario.scheme.label_rule),
        zero_load_rtt_ps=scenario.zero_load_rtt_ps,
        longest_path=scenario.tree.most_hops,
        explore_packets=options.reps_explore_packets,
        sack_threshold=sack_threshold(scenario),
        jitter_permille=round(transport.pacing_jitter * 1000),
        freeze_ps=round(options.freeze_us * PS_PER_US),
        reorder_packets=transport.reorder_packets,
        reorder_ps=round(transport.reorder_timeout_rtt * scenario.zero_load_rtt_ps),
        timer_floor_ps=round(transport.timer_floor_rtt * scenario.zero_load_rtt_ps),
        plb_acks=options.plb_acks,
        plb_percent=options.plb_percent,
        plb_gaps=options.plb_gaps,
        target_ps=target_ps(scenario),
        late_holes=1 if congestion == Congestion.SWIFT else LAZY_HOLES,
        most_delays=PSN_WINDOW if congestion == Congestion.MSWIFT else 1,
        bdp_scale=bdp_scale(scenario),
        trimming=int(transport.trimming),
        acks_first=int(transport.acks_first),
        awaits_acks=int(not scenario.is_graph),
        packets_per_ack=transport.packets_per_ack,
        tells_share=int(scenario.tells_shares),
        counter_packets=max(1, DCQCN_COUNTER_BYTES // scenario.data_bytes),
        entropy_values=entropy_values(scenario),
    )


def is_connected(scenario: Scenario) -> bool:
    """Return whether messages between two hosts share the state of their label rule."""
    is_ours = scenario.scheme.label_rule in LEARNING and not scenario.host_rule
    return is_ours and scenario.load_balancer.connections == "pair"


def refuse_unable_hosts(scenario: Scenario) -> None:
    """Raise ExperimentError for a combination that no host implements, on any network."""
    # A window counts packets that are sent and not acknowledged. Erasure coding resends nothing, so
    # a lost packet would count for ever; go-back-N sends packets again that a window let go once.
    transport = scenario.transport
    has_window = transport.congestion not in ("fixed", "dcqcn")
    if has_window and transport.recovery != "sack":
        raise ExperimentError(
            f'transport.congestion = "{transport.congestion}" needs transport.recovery = "sack":'
            " a window counts packets that are on their way, of which erasure coding never hears"
            " again if they are lost, and go-back-N sends many twice"
        )

    if transport.trimming and transport.recovery == "go_back_n":
        raise ExperimentError(
            'transport.trimming: receivers of transport.recovery = "go_back_n" take packets in'
            " order alone, and NACKs name single ones"
        )

    if transport.reorder_packets and transport.recovery != "go_back_n":
        raise ExperimentError(
            f"transport.reorder_packets = {transport.reorder_packets}: receivers of"
            f' transport.recovery = "{transport.recovery}" take packets in any order, only those'
            ' of "go_back_n" put them in order'
        )

    if is_connected(scenario) and transport.recovery == "erasure":
        raise ExperimentError(
            'load_balancer.connections = "pair" needs transport.recovery = "sack" or "go_back_n":'
            " with erasure coding a message ends without its lost packets, and the next message"
            " does not hear of them"
        )

    is_in_order = transport.recovery == "go_back_n" and not transport.reorder_packets
    if scenario.fabric.is_drawn and is_in_order:
        raise ExperimentError(
            'fabric.plane_use = "draw": packets of a message overtake each other in several planes,'
            ' and receivers of transport.recovery = "go_back_n" throw away all that come out of'
            " order; set transport.reorder_packets, or another recovery"
        )

    _refuse_few_acks(scenario)


def _refuse_few_acks(scenario: Scenario) -> None:
    """Raise ExperimentError where a label rule needs an ACK of every packet, and gets fewer."""
    few = scenario.transport.packets_per_ack
    if few == 1:
        return

    rule = scenario.scheme.label_rule
    if rule == LabelRule.PLB and not scenario.host_rule:
        raise ExperimentError(
            f"transport.packets_per_ack = {few}: {scenario.policy} judges a path by the share of"
            " its ACKs that are marked, and needs one for every packet"
        )

    names_all = scenario.transport.recovery == "sack"
    if not names_all and (scenario.host_rule or rule in LEARNING):
        raise ExperimentError(
            f"transport.packets_per_ack = {few}: {scenario.balancer} takes packets that no ACK"
            ' names for lost, and only those of transport.recovery = "sack" name all'
        )


def target_ps(scenario: Scenario) -> int:
    """Return Swift's target for a whole delay, or NSCC's for the part in queues."""
    # NSCC's target is the network's zero-load RTT, with trimming three quarters of it.
    if scenario.transport.congestion == "nscc":
        rtt_ps = scenario.zero_load_rtt_ps
        return 3 * rtt_ps // 4 if scenario.transport.trimming else rtt_ps

    return scenario.zero_load_rtt_ps + scenario.tx_ps(SWIFT_QUEUE_BYTES)


def bdp_scale(scenario: Scenario) -> int:
    """Return the bandwidth-delay product over NSCC's reference, times 2**16.

    At most PSN_WINDOW.
    """
    bit_ps = scenario.rate_bps * scenario.zero_load_rtt_ps
    return min((bit_ps << 16) // REFERENCE_BIT_PS, PSN_WINDOW << 16)


def sack_threshold(scenario: Scenario) -> int:
    """Return how many packets above a hole make it late, 0 where the number follows the window."""
    transport = scenario.transport
    if transport.sack_threshold is not None:
        return transport.sack_threshold

    return 0 if transport.congestion == "nscc" else SACK_THRESHOLD


def entropy_values(scenario: Scenario) -> int:
    """Return how many entropy values a flow of MRC has: a power of two.

    A message that is sprayed over planes has a flow in each, which share the connection's values.
    """
    is_whole = (
        scenario.tree.planes == 1
        or scenario.fabric.plane_use == "keep"
        or all(map(is_in_one_plane, scenario.collectives))
    )
    # Over a number of planes that is no power of two there are up to 256: 192 over three.
    share = -(-ENTROPY_VALUES // (1 if is_whole else scenario.tree.planes))
    return 1 << (share - 1).bit_length()


def tries(senders: Any, recovery: int) -> Any:
    """Return how often senders have tried to deliver missing packets, of one sender or of many.

    Of the packets that go-back-N sends in a row, the receiver can accept the first only.
    """
    return senders.returns if recovery == Recovery.GO_BACK_N else senders.transmissions
