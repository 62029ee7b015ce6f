"""The flow label (UDP source port) of a packet (load balancers, "Hosts").

`next_label` runs when a packet leaves, `on_ack` when an acknowledgement has arrived, before
`transport.on_ack`. Labels have 16 bits.

The state of the rules is a connection's: `connection` is the sender of its first message, which is
`sender` itself where each message is a connection (`load_balancer.connections`).
"""

from fattree.draws import Stream, below, component, mix
from fattree.policies import LabelRule
from hostagent.transports import mrc
from hostagent.transports.parts import part
from hostagent.transports.state import (
    COUNTED,
    MOST_PENALTY,
    NEVER,
    PATHS,
    RING,
    TRIMMED_PENALTY,
    PacketState,
    Recovery,
)
from hostagent.transports.timers import timeout_ps

FRESH = int(LabelRule.FRESH)
PLB = int(LabelRule.PLB)
REPS = int(LabelRule.REPS)
BITMAP = int(LabelRule.BITMAP)
MRC = int(LabelRule.MRC)
GO_BACK_N = int(Recovery.GO_BACK_N)
LABEL = int(Stream.LABEL)
PATIENCE = int(Stream.PLB)
KNOWN = int(PacketState.ACKED | PacketState.TRIMMED)

# No 16-bit label is negative.
NO_LABEL = -1


@part
def start(connection, rules):
    """Draw the first label of a connection that begins, and empty its ring."""
    # Its later messages find it begun.
    if connection.draws > 0:
        return

    connection.label = random_label(connection, rules)
    for entry in range(RING):
        connection.ring[entry] = NO_LABEL

    if rules.label_rule == PLB:
        connection.unheard_ps = NEVER
        draw_patience(connection, rules)
    elif rules.label_rule == BITMAP:
        connection.turn_xor = random_label(connection, rules) % PATHS
    elif rules.label_rule == MRC:
        connection.turn_xor = random_label(connection, rules) % rules.entropy_values


@part
def random_label(sender, rules):
    """Return the flow's next random label."""
    # Numbered by the flow's own draws, not by time: every network draws the same labels.
    label = mix(rules.seed, component(LABEL, sender.flow), sender.draws) & 0xFFFF
    sender.draws += 1
    return label


@part
def next_label(sender, connection, rules, packets, now_ps):
    """Return the label of the packet that leaves at `now_ps`."""
    if rules.label_rule == FRESH:
        return random_label(sender, rules)

    if rules.label_rule == PLB:
        if is_unheard(sender, rules, now_ps):
            change_label(sender, rules, now_ps)
    elif rules.label_rule == REPS:
        return recycled_label(sender, connection, rules, packets, now_ps)
    elif rules.label_rule == BITMAP:
        lose_silent(sender, connection, rules, packets, now_ps=now_ps)
        return unpenalised_label(connection, rules)
    elif rules.label_rule == MRC:
        lose_silent(sender, connection, rules, packets, now_ps=now_ps)
        return mrc.next_label(connection, rules)

    return sender.label


@part
def on_ack(connection, rules, label, marked, now_ps):
    """Learn from an ACK that echoes `label` and whether its data packet was marked."""
    if rules.label_rule == PLB:
        judge_path(connection, rules, marked, now_ps)
    elif rules.label_rule == REPS and not marked:
        keep_label(connection, label)
    elif rules.label_rule == BITMAP and marked:
        penalise(connection, label, 1)
    elif rules.label_rule == MRC:
        mrc.on_echo(connection, rules, label=label, is_congested=marked)


@part
def on_nack(connection, rules, label, now_ps):
    """Learn that a switch has cut a packet of this label: its queue was full, not only long.

    PLB counts it as a mark; REPS learns only from unmarked ACKs, and does nothing.
    """
    if rules.label_rule == PLB:
        judge_path(connection, rules, True, now_ps)
    elif rules.label_rule == BITMAP:
        penalise(connection, label, TRIMMED_PENALTY)
    elif rules.label_rule == MRC:
        mrc.on_echo(connection, rules, label=label, is_congested=True)


@part
def on_resent(connection, rules, packet, label, is_timeout):
    """Learn that the transport sends a packet again, with `label`: it has timed out, or is late."""
    if rules.label_rule == MRC and is_timeout:
        mrc.lose(connection, rules, packet)
        packet.doubted = 0
    elif rules.label_rule == MRC:
        mrc.doubt(rules, packet, label)


@part
def is_probe(connection, rules, label):
    """Return whether a packet of the label that was just chosen tests a path that may be dead."""
    return rules.label_rule == MRC and mrc.is_probed(connection, rules, label)


@part
def held_ps(sender, connection, rules, now_ps):
    """Return until when a flow waits behind the packet that leaves now, 0 if it need not.

    MRC: where all values are retired, probes leave a timeout apart, or after an echo.
    """
    # Receivers of go-back-N throw packets away without an answer: silence is no sign of a loss.
    if rules.label_rule != MRC or rules.recovery == GO_BACK_N:
        return 0

    if not mrc.is_out(connection, rules):
        return 0

    connection.has_echo = 0
    return now_ps + timeout_ps(sender, rules)


@part
def expire(sender, rules, packets, now_ps):
    """Return how many packets have gone unacknowledged for a timeout since the last call."""
    return lose_silent(sender, sender, rules, packets, now_ps)


@part
def lose_silent(sender, connection, rules, packets, now_ps):
    """Return how many packets have gone unacknowledged for a timeout since the last call.

    REPS forgets their labels, UET Bitmap gives them the most penalty, MRC retires them.
    """
    # `oldest` never goes back, so each packet is looked at about once in its life. Times grow with
    # the packet numbers; a resent packet is younger and holds up those behind it for a while.
    expired = 0
    limit_ps = timeout_ps(sender, rules)
    while sender.oldest < sender.sent:
        packet = packets[sender.oldest & (len(packets) - 1)]
        if not packet.state & KNOWN:
            if packet.sent_ps + limit_ps > now_ps:
                break

            expired += 1
            if rules.label_rule == REPS:
                forget_label(connection, packet.label)
            elif rules.label_rule == BITMAP:
                penalise(connection, packet.label, MOST_PENALTY)
            elif rules.label_rule == MRC:
                mrc.lose(connection, rules, packet)

        sender.oldest += 1

    return expired


@part
def excuse(sender, rules, packets):
    """Let packets that are under way count against no value of MRC: a port of theirs is down."""
    if rules.label_rule == MRC:
        for psn in range(max(sender.sent - len(packets), 0), sender.sent):
            packets[psn & (len(packets) - 1)].doubted = COUNTED


@part
def is_unheard(sender, rules, now_ps):
    """PLB: return whether no ACK or NACK has come for a timeout, although packets have left.

    Note when the first packet since the last ACK leaves.
    """
    # The timer is the flow's, not a packet's: a few lost packets are no reason to leave a path that
    # other packets come through. After a timeout the new path has the same time.
    if sender.unheard_ps == NEVER:
        sender.unheard_ps = now_ps

    if now_ps - sender.unheard_ps < timeout_ps(sender, rules):
        return False

    sender.unheard_ps = now_ps
    return True


@part
def judge_path(sender, rules, marked, now_ps):
    """PLB: leave a bad path.

    A path is good while under `plb_percent` of the last `plb_acks` ACKs are marked.
    """
    sender.unheard_ps = NEVER
    sender.acks_seen = min(sender.acks_seen + 1, rules.plb_acks)
    sender.history = ((sender.history << 1) | (1 if marked else 0)) & ((1 << rules.plb_acks) - 1)
    marks = 0

    for bit in range(rules.plb_acks):
        marks += (sender.history >> bit) & 1

    # The paper's PLB has no RPC boundaries to wait for: "at most every alpha packets" instead
    # ("Leading Contenders", 3), which is the patience here.
    if marks * 100 < rules.plb_percent * sender.acks_seen or sender.good_ps < 0:
        sender.good_ps = now_ps
    elif now_ps - max(sender.good_ps, sender.changed_ps) > sender.patience_ps:
        change_label(sender, rules, now_ps)


@part
def change_label(sender, rules, now_ps):
    """PLB: take a new label and draw how long it may stay bad."""
    sender.label = random_label(sender, rules)
    sender.changed_ps = now_ps
    draw_patience(sender, rules)


@part
def draw_patience(sender, rules):
    """PLB: draw a patience of `plb_gaps` packet gaps and up to two more."""
    # Random, so that flows that met on a bad path do not move on together. A label is drawn before
    # every patience, so `draws` numbers patiences as well.
    draw = mix(rules.seed, component(PATIENCE, sender.flow), sender.draws)
    sender.patience_ps = rules.plb_gaps * sender.gap_ps + below(draw, 2 * sender.gap_ps)


@part
def recycled_label(sender, connection, rules, packets, now_ps):
    """REPS: explore; or, frozen, cycle the ring; or reuse the oldest fresh label; or draw anew."""
    if connection.frozen_until_ps > 0 and now_ps >= connection.frozen_until_ps:
        thaw(connection, rules)

    if (
        lose_silent(sender, connection, rules, packets, now_ps=now_ps)
        and connection.frozen_until_ps == 0
        and connection.explore == 0
    ):
        connection.frozen_until_ps = now_ps + rules.freeze_ps
        connection.frozen_head = connection.head
        sender.freezes += 1

    if connection.explore > 0:
        connection.explore -= 1
        return random_label(connection, rules)

    # The next label goes to the head, so the first valid entry from the head on is the oldest.
    # Without a valid entry labels are random: so a new flow finds its first paths.
    is_frozen = connection.frozen_until_ps > 0
    first = connection.frozen_head if is_frozen else connection.head
    for step in range(RING if is_frozen or connection.fresh > 0 else 0):
        entry = (first + step) % RING
        if connection.ring[entry] != NO_LABEL and (is_frozen or connection.ring_valid[entry]):
            connection.fresh -= connection.ring_valid[entry]
            connection.ring_valid[entry] = 0
            connection.frozen_head = (entry + 1) % RING

            return connection.ring[entry]

    return random_label(connection, rules)


@part
def thaw(connection, rules):
    """REPS: leave freezing: empty the ring and explore one bandwidth-delay product."""
    # The ring's labels are from before the failure; links may have come back since.
    connection.frozen_until_ps = 0
    connection.explore = rules.explore_packets
    connection.fresh = 0

    for entry in range(RING):
        connection.ring[entry] = NO_LABEL
        connection.ring_valid[entry] = 0


@part
def keep_label(connection, label):
    """REPS: write an unmarked ACK's label at the head."""
    connection.fresh += 1 - connection.ring_valid[connection.head]
    connection.ring[connection.head] = label
    connection.ring_valid[connection.head] = 1
    connection.head = (connection.head + 1) % RING


@part
def forget_label(connection, label):
    """REPS: remove a label that timed out from the ring, until it is acknowledged again."""
    for entry in range(RING):
        if connection.ring[entry] == label:
            connection.ring[entry] = NO_LABEL
            connection.fresh -= connection.ring_valid[entry]
            connection.ring_valid[entry] = 0


@part
def unpenalised_label(connection, rules):
    """UET Bitmap: take the next path without a penalty; lower the penalty of the first in turn."""
    path = next_path(connection, rules)
    if connection.penalties[path] > 0:
        connection.penalties[path] -= 1
        path = next_path(connection, rules)

        # Where all paths have penalties, the path at the end of a whole round of turns.
        for _ in range(PATHS - 1):
            if connection.penalties[path] == 0:
                break

            path = next_path(connection, rules)

    # The upper bits are the flow's own: two flows' labels of one path lead through other links.
    return connection.label - connection.label % PATHS + path


@part
def next_path(connection, rules):
    """UET Bitmap: return the path in turn and advance; each round has another order."""
    path = connection.turn ^ connection.turn_xor
    connection.turn += 1
    if connection.turn == PATHS:
        connection.turn = 0
        connection.turn_xor = random_label(connection, rules) % PATHS

    return path


@part
def penalise(connection, label, penalty):
    """UET Bitmap: add to the penalty of a label's path."""
    path = label % PATHS
    connection.penalties[path] = min(int(connection.penalties[path]) + penalty, MOST_PENALTY)
