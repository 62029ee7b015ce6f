"""The order of a host's flows and computations: they start, then wait in heaps."""

from hostagent.transports import labels, transport
from hostagent.transports.state import NEVER
from sim.kernels.jit import at, clear, inlined
from sim.kernels.state import LAST_DONE, NO_SENDER, UNFINISHED


@inlined
def unblock(world, number, flow, now_ps):
    """Start the flows of this host's machine that waited for `flow` alone."""
    flows = world.flows
    machines = world.constants.machines
    # Both ends of a flow come here, each for its own: no machine knows the other machine's state
    # (decision 9), nor changes another machine's flows.
    for entry in range(flows.follower_offset[flow], flows.follower_offset[flow + 1]):
        follower = flows.followers[entry]
        host = flows.table[follower].source
        if host % machines != number % machines:
            continue

        flows.blocked[follower] -= 1
        if flows.blocked[follower] == 0:
            start_flow(world, host, follower, now_ps)


@inlined
def start_flow(world, number, flow, now_ps):
    """Make a flow a sender, first due a phase later, with a place among its host's flows.

    Or let a computation begin.
    """
    flows = world.flows
    rules = world.rules
    constant = flows.table[at(flow)]
    flows.started_ps[flow] = now_ps
    if constant.packets == 0:
        flows.ended[flow].first_ps = now_ps
        start_computation(world, number, flow, now_ps + constant.compute_ps)
        return

    sender = take_sender(world, number, flow)
    due_ps = now_ps + constant.phase_ps
    share = 1
    if rules.tells_share:
        share = transport.share_at_start(
            rules,
            told=int(flows.told[constant.pair]),
            told_ps=flows.told_ps[constant.pair],
            in_turn=constant.in_turn,
            now_ps=now_ps,
        )

    transport.start(
        sender,
        rules,
        flow,
        packets=int(constant.packets),
        gap_ps=constant.gap_ps,
        due_ps=due_ps,
        hops=int(constant.hops),
        in_turn=constant.in_turn,
        share=share,
    )

    labels.start(connection_of(flows, constant), rules)
    ring = flows.outstanding[constant.ring : constant.ring + constant.ring_length]
    join(world, number, flow, transport.ready_ps(sender, rules, ring))


@inlined
def take_sender(world, number, flow):
    """Return the record of a flow's sender, zeroed: the last that a flow of its host gave back."""
    # Of millions of flows only some are under way at a time: their records stay in caches.
    flows = world.flows
    if len(flows.spares) > 0:
        flows.spares[number] -= 1
        spare = flows.spare_senders[world.hosts[number].heap_first + flows.spares[number]]
        flows.sender_of[flow] = spare
        clear(flows.senders[spare])

    return sender_of(flows, flow)


@inlined
def give_back_sender(world, number, flow):
    """Keep the results of a flow that ends; its record is free for another flow."""
    flows = world.flows
    sender = sender_of(flows, flow)
    ended = flows.ended[at(flow)]
    ended.first_ps = sender.first_ps
    ended.done_ps = sender.done_ps
    ended.transmissions = sender.transmissions
    ended.freezes = sender.freezes
    ended.returns = sender.returns

    if len(flows.spares) > 0:
        spare = flows.sender_of[at(flow)]
        flows.spare_senders[world.hosts[number].heap_first + flows.spares[number]] = spare
        flows.spares[number] += 1
        flows.sender_of[at(flow)] = NO_SENDER


@inlined
def sender_of(flows, flow):
    """Return the record of the sender of a flow that is under way."""
    return flows.senders[at(flows.sender_of[at(flow)])]


@inlined
def connection_of(flows, constant):
    """Return the record of the sender that keeps the state of a flow's label rule."""
    return sender_of(flows, constant.connection)


@inlined
def join(world, number, flow, ready_ps):
    """Add a flow to a host's heap."""
    # At the end of the heap with the latest time there is, which keeps the heap in order; `requeue`
    # then moves it up to where it belongs.
    host = world.hosts[number]
    world.flows.ready_ps[flow] = NEVER
    world.flows.place[flow] = host.heap_size
    world.heap[host.heap_first + host.heap_size] = flow
    host.heap_size += 1
    requeue(world, number, flow, ready_ps)


@inlined
def start_computation(world, number, flow, end_ps):
    """Add a computation to its host's heap; it ends at its time."""
    flows = world.flows
    host = world.hosts[number]
    flows.ready_ps[flow] = end_ps
    flows.place[flow] = host.timer_size
    world.timers[host.timer_first + host.timer_size] = flow
    host.timer_size += 1
    timers = world.timers[host.timer_first : host.timer_first + host.timer_size]
    sift_up(timers, flows.place, flows.ready_ps, flow)
    host.timer_ps = flows.ready_ps[timers[0]]


@inlined
def end_computation(world, number, now_ps):
    """End the computation of a host that ends first, and start the flows behind it."""
    flows = world.flows
    host = world.hosts[at(number)]
    timers = world.timers[host.timer_first : host.timer_first + host.timer_size]
    flow = int(timers[0])
    take_out_first(timers, flows.place, flows.ready_ps)
    host.timer_size -= 1
    host.timer_ps = flows.ready_ps[timers[0]] if host.timer_size > 0 else NEVER

    flows.ended[flow].done_ps = now_ps
    world.counters[UNFINISHED] -= 1
    world.counters[LAST_DONE] = max(world.counters[LAST_DONE], now_ps)
    unblock(world, number, flow, now_ps)


@inlined
def requeue(world, number, flow, ready_ps):
    """Give a flow its new ready time and its place in the host's heap.

    An all-to-all has as many flows a host as there are hosts: a search among them for every packet
    would cost more than all the rest. Ties go to the lower number (decision 3), so the order of
    flows does not depend on the heap's history.
    """
    flows = world.flows
    host = world.hosts[at(number)]
    if flows.ready_ps[at(flow)] != ready_ps:
        flows.ready_ps[at(flow)] = ready_ps
        if host.heap_size > 1:
            heap = world.heap[host.heap_first : host.heap_first + host.heap_size]
            # Earlier or later: either sift does nothing.
            sift_up(heap, flows.place, flows.ready_ps, flow)
            sift_down(heap, flows.place, flows.ready_ps, flow)

        host.ready_ps = flows.ready_ps[at(world.heap[at(host.heap_first)])]


@inlined
def is_before(ready_ps, flow, other_flow):
    """Return whether a flow comes first: ready earlier, or as early and with the smaller number."""
    if ready_ps[flow] != ready_ps[other_flow]:
        return ready_ps[flow] < ready_ps[other_flow]

    return flow < other_flow


@inlined
def sift_up(heap, position, ready_ps, flow):
    """Move a flow towards the top until its parent comes before it."""
    index = int(position[flow])
    while index > 0:
        parent = int(heap[(index - 1) // 2])
        if is_before(ready_ps, parent, flow):
            break

        heap[index] = parent
        position[parent] = index
        index = (index - 1) // 2

    heap[index] = flow
    position[flow] = index


@inlined
def take_out_first(heap, position, ready_ps):
    """Let the last flow take the place of the first; the heap is one shorter afterwards."""
    last = int(heap[-1])
    if len(heap) > 1:
        heap[0] = last
        position[last] = 0
        sift_down(heap[:-1], position, ready_ps, last)


@inlined
def sift_down(heap, position, ready_ps, flow):
    """Move a flow away from the top until it comes before its children."""
    index = int(position[flow])
    size = len(heap)
    while 2 * index + 1 < size:
        child = 2 * index + 1
        if child + 1 < size and is_before(ready_ps, int(heap[child + 1]), int(heap[child])):
            child += 1

        if is_before(ready_ps, flow, int(heap[child])):
            break

        heap[index] = heap[child]
        position[int(heap[index])] = index
        index = child

    heap[index] = flow
    position[flow] = index
