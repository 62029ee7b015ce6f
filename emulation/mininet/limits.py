"""Limits of real processes: the scenarios that Mininet refuses, and its patience."""

from emulation.errors import UnsupportedError
from emulation.mininet.kernel import MTU
from fattree.experiment.model import Failures, Scenario
from fattree.experiment.pauses import is_paused
from fattree.routes.buffers import refuse_unable_pauses, rooms
from fattree.routes.failures import Timeline
from fattree.routes.standstill import Patience, patience
from fattree.units import PS_PER_MS, PS_PER_SECOND
from hostagent.own_packet import FCS
from hostagent.rules import refuse_unable_hosts
from hostagent.transports.roce import BTH, ETHERNET, ICRC, IPV4, UDP

# Software switches of ours carry some 10,000 packets/s a core, BMv2 several times that.
MOST_PACKETS_PER_SECOND = 300_000
COMFORTABLE_PACKETS_PER_SECOND = 10_000
# Below a megabit a second a packet takes tens of milliseconds: pace the hosts instead.
LEAST_RATE_GBPS = 0.001
# Edge, aggregation, core, aggregation, edge.
SWITCHES_ON_A_PATH = 5
# Real processes may be kept from working for a while: a run without progress gets so much longer.
HELD_UP_PS = 10 * PS_PER_SECOND
# The packet that makes a pause necessary is read late, the pause is sent late and read late. On a
# busy machine processes wait for a processor so long, all together (docs/lossless.md).
PAUSED_LATE_PS = 500 * PS_PER_MS


def refuse_unsupported(scenario: Scenario) -> None:
    """Raise UnsupportedError where a scenario needs more than real processes can give.

    Raises ExperimentError where it needs more than hosts offer on any network.
    """
    refuse_unable_hosts(scenario)
    if scenario.failures.local_repair:
        raise UnsupportedError(
            "failures.local_repair: only virtual switches and the simulator repair locally"
            " (--network virtual or sim)"
        )

    if scenario.transport.trimming:
        raise UnsupportedError(
            "transport.trimming: BMv2 and the software switch drop what finds a queue full, they"
            " cannot cut it (--network virtual or sim)"
        )

    refuse_unable_pauses(scenario)
    if scenario.fabric.buffer != "static":
        raise UnsupportedError(
            'fabric.buffer = "shared": each queue of a switch process has a limit of its own'
            " (--network virtual or sim)"
        )

    _refuse_failures(scenario.failures)
    _refuse_beside_bgp(scenario)
    if scenario.load_balancer.queue_staleness_ns:
        raise UnsupportedError(
            "load_balancer.queue_staleness_ns: time stamps in P4 are whole microseconds, so that a"
            " snapshot 100 ns old cannot be kept; only the simulator ages queue lengths"
            " (ofan sim run)"
        )

    payload_limit = largest_payload(scenario)
    if scenario.packets.payload_bytes > payload_limit:
        raise UnsupportedError(
            f"packets.payload_bytes = {scenario.packets.payload_bytes}: with their headers packets"
            f" may have {MTU} bytes here, so the payload at most {payload_limit}"
        )

    offered = switch_packets_per_second(scenario)
    if offered > MOST_PACKETS_PER_SECOND:
        raise UnsupportedError(
            f"fabric.rate_gbps = {scenario.fabric.rate_gbps:g} offers {offered:.2g} packets/s"
            " to software switches, which carry some 10,000 a core:"
            f" try {_remedy(scenario, offered)}"
        )

    for switch in range(scenario.tree.switches if is_paused(scenario) else 0):
        rooms(scenario, switch, PAUSED_LATE_PS)


def _refuse_failures(failures: Failures) -> None:
    """Raise UnsupportedError for failures that only virtual links know."""
    hosts = [event for event in failures.events if event.host or (event.switch or "")[:4] == "edge"]
    if hosts:
        raise UnsupportedError(
            f"failures.events: {hosts[0].name} takes hosts' links with it, which fail on virtual"
            " networks only (--network virtual or sim)"
        )

    if failures.storms:
        raise UnsupportedError(
            f"failures.storms: {failures.storms[0].host} has no NIC of its own that could go on"
            " pausing its link (--network virtual or sim)"
        )


def switch_packets_per_second(scenario: Scenario) -> float:
    """Return how often a packet passes a switch while all hosts send across the fabric."""
    # Twice: every data packet has its ACK.
    paced = scenario.transport.rate_limit or 1
    return scenario.tree.hosts * 2 * SWITCHES_ON_A_PATH * PS_PER_SECOND / scenario.slot_ps * paced


def _refuse_beside_bgp(scenario: Scenario) -> None:
    """Raise UnsupportedError where BGP's routes do not suffice, or a setting has no effect."""
    if scenario.controller.kind != "bgp":
        return

    if scenario.tree.has_parallel_links:
        raise UnsupportedError(
            'controller.kind = "bgp": over parallel links a switch deals out the hosts below other'
            " switches, and does not know the links of those"
        )

    if scenario.failures.convergence_rtt:
        raise UnsupportedError(
            'failures.convergence_rtt: with controller.kind = "bgp" routes change when BGP changes'
            " them"
        )


def largest_payload(scenario: Scenario) -> int:
    """Return the payload bytes of the longest packet that the veth pairs carry."""
    # Ethernet's own bytes do not count. Some hosts put a header in front that names the way.
    tunnel = scenario.scheme.outer_bytes
    # Of the user's packets it is known how long they are at most.
    user_headers = scenario.packets.header_bytes - ETHERNET - FCS if scenario.agent_packet else 0
    return MTU - tunnel - (user_headers or IPV4 + UDP + BTH + ICRC)


def strain(scenario: Scenario, processors: int) -> str:
    """Return a line where hosts offer more than the switches carry on so many processors, or ''."""
    offered = switch_packets_per_second(scenario)
    carried = processors * COMFORTABLE_PACKETS_PER_SECOND
    if offered <= carried:
        return ""

    rate = scenario.fabric.rate_gbps
    return (
        f"fabric.rate_gbps = {rate:g} offers {offered:,.0f} packets/s, and this machine's"
        f" {processors} processors carry some {carried:,}: queues will be the machine's, not the"
        f" fabric's (try {_remedy(scenario, offered / processors)})"
    )


def _remedy(scenario: Scenario, offered: float) -> str:
    # Packets are proportional to the rate; where links cannot be slow enough, hosts are.
    proportional = scenario.fabric.rate_gbps * COMFORTABLE_PACKETS_PER_SECOND / offered
    rate = max(proportional, LEAST_RATE_GBPS)
    limit = "" if rate == proportional else f" --set transport.rate_limit={proportional / rate:.1g}"

    return f"--set fabric.rate_gbps={rate:.1g}{limit} --set fabric.latency_ns=5e6"


def real_patience(scenario: Scenario, events: Timeline) -> Patience:
    """Return the patience with a run without progress in real time (`routes.standstill`)."""
    virtual = patience(scenario, events)
    return virtual._replace(wait_ps=virtual.wait_ps + HELD_UP_PS)
