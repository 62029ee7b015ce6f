"""Lower bounds of the completion time, which no run beats: no queueing, no loss.

Each is the largest of the times that links and waits need: the longest chain of flows, each alone
on empty links; the load of each host's link, to it and from it; and the load of links between
switches that are slow, dead or few. Where packets may leave by another port of their machine, its
ports count as one link of their rates together (`_Ends`). Where every host sends one message and
gets one alike, appendix B knows more (`fattree.demand.bounds`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.demand.bounds import Timing, ack_times_ps
from fattree.demand.flows import Flows, entries, generations, in_generations, path_links
from fattree.demand.traffic import gaps as line_rate_gaps
from fattree.experiment.model import Scenario
from fattree.experiment.nics import nic
from fattree.experiment.pauses import is_paused
from fattree.routes.cuts import cut_bound_ps
from fattree.routes.failures import moves_between_planes
from fattree.routes.link_work import LinkWork, last_packets, link_work, packets_an_ack
from fattree.shape.topology import FatTree

Int64 = NDArray[np.int64]
LATER = np.iinfo(np.int64).max // 4


class _Ends(NamedTuple):
    """The links at flows' ends: `links` of them, each made of `side_by_side` links of hosts."""

    source: Int64
    destination: Int64
    links: int
    side_by_side: int

    @classmethod
    def of(cls, scenario: Scenario, flows: Flows) -> "_Ends":
        """Return hosts' links, or those of each machine together if packets move between them."""
        tree = scenario.tree
        if not moves_between_planes(scenario):
            return cls(flows.source, flows.destination, tree.hosts, 1)

        machines = tree.machines
        return cls(flows.source % machines, flows.destination % machines, machines, tree.planes)


def bound_ps(scenario: Scenario, flows: Flows, gaps: Int64 | None = None) -> int:
    """Return the lower bound of the CCT of `flows`, from each flow's start.

    `gaps` are the paced gaps (under failures); by default those at line rate.
    """
    paced = line_rate_gaps(scenario, flows) if gaps is None else gaps
    work = link_work(scenario, flows)
    ends = _Ends.of(scenario, flows)
    together = _both_ways_ps(scenario, flows, ends, paced)
    chain_ps, last_ps = _longest_chain_ps(scenario, flows, ends, paced, together, work)
    known_ps = max(chain_ps, last_ps, _busiest_link_ps(flows, ends, work))
    return cut_bound_ps(scenario, flows, known_ps)


def sending_bound_ps(scenario: Scenario, flows: Flows, gaps: Int64 | None = None) -> int:
    """Return the lower bound of the CCT from each flow's first packet.

    A flow that waits for others counts from the start, as in `Flows.longest_sending_ps`.
    """
    paced = line_rate_gaps(scenario, flows) if gaps is None else gaps
    work = link_work(scenario, flows)
    # Of several flows of a host each counts from its own first packet.
    ends = _Ends.of(scenario, flows)
    _, flow_of, count = np.unique(ends.source, return_inverse=True, return_counts=True)
    is_alone = count[flow_of.ravel()] == 1
    together = np.where(is_alone, _both_ways_ps(scenario, flows, ends, paced), 0)
    chain_ps, _ = _longest_chain_ps(scenario, flows, ends, paced, together, work)
    # If NICs are paused, the time at which a first packet leaves is unknown.
    is_apart = len(flows.after) > 0 or np.ptp(flows.start_ps) > 0
    if scenario.is_shared_actively or is_apart or is_paused(scenario):
        return chain_ps

    # Where all begin together: a first packet leaves within a gap and the time of others' first
    # packets, each with an ACK.
    firsts_ps = count[flow_of.ravel()] * (work.data_slot_ps + work.ack_slot_ps)
    latest_ps = int((paced + firsts_ps).max())
    known_ps = max(chain_ps, _busiest_link_ps(flows, ends, work) - latest_ps)
    return cut_bound_ps(scenario, flows, known_ps + latest_ps) - latest_ps


def _longest_chain_ps(
    scenario: Scenario,
    flows: Flows,
    ends: _Ends,
    paced: Int64,
    together: Int64,
    work: LinkWork,
) -> tuple[int, int]:
    """Return when the last flow is done if each is alone on empty links, and waits for its own.

    And when the last host is done, if its flows share its link. `together` is the least time of a
    flow beside its host's others, 0 if unknown.
    """
    is_sent = flows.packets > 0
    pace = np.maximum(paced, work.data_slot_ps // ends.side_by_side)
    begun = np.where(is_sent, (flows.packets - 1) * pace, flows.compute_ps)
    arrived = np.where(is_sent, work.arrived_ps(flows.packets, pace), flows.compute_ps)
    acknowledged = np.maximum(arrived + work.back_ps, together)
    # A flow that waits in a graph for a transfer at its source waits until it is sent; else for its
    # ACKs.
    at_source = begun if scenario.is_graph else acknowledged
    begins = _begins_ps(scenario.tree, flows, ends, at_source, arrived, work)
    last = _last_of_hosts_ps(flows, ends, begins, work)

    return int((begins + acknowledged - flows.start_ps).max(initial=0)), last


def _begins_ps(
    tree: FatTree,
    flows: Flows,
    ends: _Ends,
    at_source: Int64,
    at_destination: Int64,
    work: LinkWork,
) -> Int64:
    """Return the earliest begin of each flow, after the flows that it waits for.

    `at_source` and `at_destination` are how long after its own begin a flow is known to be done.
    """
    begins: Int64 = flows.start_ps.copy()
    # By generations, so the flows that a flow waits for have their begin already.
    for chosen in in_generations(generations(tree, flows))[1:]:
        waiting = np.repeat(chosen, np.diff(flows.after_offset)[chosen])
        awaited = flows.after[entries(flows.after_offset, chosen)]
        is_own = (flows.source[awaited] - flows.source[waiting]) % tree.machines == 0
        done = np.where(is_own, at_source[awaited], at_destination[awaited])
        np.maximum.at(begins, waiting, begins[awaited] + done)

        # Several that it waits for share the link of one NIC, from it or to it.
        end = np.where(is_own, ends.source[awaited], ends.destination[awaited])
        key = (waiting * 2 + is_own) * ends.links + end
        groups, group_of = np.unique(key, return_inverse=True)
        group_of = group_of.ravel()
        earliest, tail = (np.full(len(groups), LATER) for _ in range(2))
        held = np.zeros(len(groups), dtype=np.int64)
        reached = begins[awaited] + np.where(is_own, 0, work.first_ps[awaited])
        np.minimum.at(earliest, group_of, reached)
        # The last flow to be sent has begun, the last flow to be received has arrived.
        of_last = np.where(
            is_own,
            -work.data_slot_ps[awaited],
            work.received_tail_ps[awaited] - work.back_ps[awaited],
        )
        np.minimum.at(tail, group_of, of_last)
        np.add.at(
            held, group_of, np.where(is_own, work.sending_ps[awaited], work.receiving_ps[awaited])
        )
        together = earliest + np.where(held > 0, held // ends.side_by_side + tail, 0)
        np.maximum.at(begins, groups // ends.links // 2, together)

    return begins


def _last_of_hosts_ps(flows: Flows, ends: _Ends, begins: Int64, work: LinkWork) -> int:
    """Return when the last host is done, if its flows of the same time share its link.

    Of the flows of a host that begin at a time or later, each needs the link from then on.
    """
    sent = np.flatnonzero(flows.packets)
    ways = (
        (ends.source, begins, work.sending_ps, work.sent_tail_ps),
        (ends.destination, begins + work.first_ps, work.receiving_ps, work.received_tail_ps),
    )
    longest = 0
    for host, earliest, held, tail in ways if len(sent) else ():
        order = sent[np.lexsort((-earliest[sent], host[sent]))]
        first = np.flatnonzero(np.diff(host[order], prepend=-1))
        total = np.cumsum(held[order])
        before = np.repeat(total[first] - held[order][first], np.diff([*first, len(order)]))
        least = _least(ends.links, (host[sent], tail[sent]))[host[order]]
        latest = -_least(ends.links, (host[sent], -flows.start_ps[sent]))[host[order]]
        done = earliest[order] + (total - before) // ends.side_by_side + least - latest
        longest = max(longest, int(done.max()))

    return longest


def _both_ways_ps(scenario: Scenario, flows: Flows, ends: _Ends, paced: Int64) -> Int64:
    """Return appendix B's time of flows at hosts with one receiver, and one sender of no less.

    0 for all others: a host without data to send acknowledges at once, and a host that gets its
    data over other paths begins to acknowledge at another time.
    """
    times_ps = np.zeros(len(flows), dtype=np.int64)
    # With fewer ACKs than packets a host's link has room between data. So have a machine's links
    # where packets move between them.
    if not len(flows) or packets_an_ack(scenario) > 1 or ends.side_by_side > 1:
        return times_ps

    tree = scenario.tree
    hops = path_links(tree, flows)
    together = generations(tree, flows) * tree.hosts
    sender, receiver = together + flows.source, together + flows.destination
    count = int(max(sender.max(), receiver.max())) + 1
    # Short packets and their ACKs are left out: without them nothing takes longer.
    whole = flows.packets - (last_packets(scenario, flows) < scenario.data_bytes)
    whole = np.maximum(whole, 0)
    sends, gets = (np.bincount(end, whole, count) for end in (sender, receiver))
    # Per host and generation: how many flows, how far, when, to whom and from whom.
    parts = np.bincount(sender, minlength=count)
    out, come = (
        [_only(count, end, values) for values in (hops, flows.start_ps, far_end)]
        for end, far_end in ((sender, receiver), (receiver, sender))
    )
    alike = (out[2] >= 0) & (come[2] >= 0) & (out[0] == come[0]) & (out[1] == come[1])
    alike &= (sends > 0) & (gets >= sends)

    # A slower pace leaves room for ACKs between data.
    is_full = paced <= parts[sender] * nic(scenario).data_ps
    chosen = np.flatnonzero(alike[sender] & is_full)
    # The recursion is the same for all hosts with equal figures: each distinct case is run once.
    keys = np.stack([hops[chosen], sends[sender[chosen]].astype(np.int64)], axis=1)
    cases, case_of = np.unique(keys, axis=0, return_inverse=True)
    times = [_case_ps(scenario, links, packets) for links, packets in cases.tolist()]
    times_ps[chosen] = np.array(times, dtype=np.int64)[case_of.ravel()]

    return times_ps


def _only(count: int, group: Int64, values: Int64) -> Int64:
    """Return the value that all members of each of `count` groups have, -1 where they differ."""
    least, greatest = np.full(count, LATER), np.full(count, -LATER)
    np.minimum.at(least, group, values)
    np.maximum.at(greatest, group, values)

    return np.where(least == greatest, least, -1)


def _busiest_link_ps(flows: Flows, ends: _Ends, work: LinkWork) -> int:
    """Return how long the host's link that has most to carry needs, one way or the other.

    Counted from the latest start of a flow that takes part in it.
    """
    sent = np.flatnonzero(flows.packets)
    if not len(sent):
        return 0

    hosts = ends.links
    start_ps, first_ps = flows.start_ps[sent], work.first_ps[sent]
    source, destination = ends.source[sent], ends.destination[sent]
    sent_tail, received_tail = work.sent_tail_ps[sent], work.received_tail_ps[sent]

    def loads(end: Int64, times_ps: Int64) -> Int64:
        # Floats hold the sums of any run exactly: 2**53 ps are two and a half hours.
        sums = np.bincount(end, weights=times_ps[sent], minlength=hosts).astype(np.int64)
        return sums // ends.side_by_side

    # From a host: its data, and the ACKs of arriving data. They begin when it may send, or when a
    # first packet has arrived; the last of them still has its way.
    data = loads(source, work.sending_ps)
    acks = loads(destination, work.acks_ps)
    first = _least(hosts, (source, start_ps), (destination, start_ps + first_ps))
    last = _least(hosts, (source, sent_tail), (destination, work.ack_tail_ps[sent]))
    latest = -_least(hosts, (source, -start_ps), (destination, -start_ps))
    up = np.where(data + acks > 0, first + data + acks + last - latest, 0)

    # Its data alone: the last packet is to be acknowledged.
    first, last = _least(hosts, (source, start_ps)), _least(hosts, (source, sent_tail))
    latest = -_least(hosts, (source, -start_ps))
    out = np.where(data > 0, first + data + last - latest, 0)

    # To a host: the data alone, as ACKs may be lost on their way.
    gets = loads(destination, work.receiving_ps)
    first = _least(hosts, (destination, start_ps + first_ps))
    last = _least(hosts, (destination, received_tail))
    latest = -_least(hosts, (destination, -start_ps))
    down = np.where(gets > 0, first + gets + last - latest, 0)

    return int(max(up.max(), out.max(), down.max()))


def _least(hosts: int, *parts: tuple[Int64, Int64]) -> Int64:
    """Return the least of the values of each host, given as (host, value) columns."""
    least = np.full(hosts, LATER)
    for host, values in parts:
        np.minimum.at(least, host, values)

    return least


def _case_ps(scenario: Scenario, hops: int, packets: int) -> int:
    # Appendix B lets the slots of all hosts meet. Where they do not, an ACK may come between others
    # that it would have waited for: runs have been seen up to 0.7 of an ACK's slot below.
    timing = Timing.of(scenario, hops)
    return ack_times_ps(timing, packets)[-1] - timing.ack_slot_ps
