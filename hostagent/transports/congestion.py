"""The congestion control of a flow: none, Swift's window in three forms, NSCC's, or a rate."""

from hostagent.transports import dcqcn, nscc, swift
from hostagent.transports.parts import part
from hostagent.transports.state import Congestion

# Plain integers: kernels compare them with the fields of records.
SWIFT = int(Congestion.SWIFT)
MSWIFT = int(Congestion.MSWIFT)
NSCC = int(Congestion.NSCC)
DCQCN = int(Congestion.DCQCN)


@part
def is_swift(rules):
    """Return whether flows have Swift's window, in any form."""
    return SWIFT <= rules.congestion <= MSWIFT


@part
def has_window(rules):
    """Return whether flows have a window, not a rate alone."""
    return SWIFT <= rules.congestion <= NSCC


@part
def start(sender, rules, hops):
    """Give a flow its first window."""
    if rules.congestion == NSCC:
        nscc.start(sender)
    elif rules.congestion == DCQCN:
        dcqcn.start(sender)
    elif is_swift(rules):
        swift.start(sender, rules, hops)


@part
def allows(sender, rules):
    """Return whether one more packet may be outstanding."""
    # A packet that a switch has cut is not under way, and waits to be sent again.
    outstanding = sender.sent - sender.acked - sender.trimmed
    return not has_window(rules) or outstanding < sender.window >> 16


@part
def on_ack(sender, rules, packets, marked, rtt_ps, now_ps):
    """Learn from an ACK; `rtt_ps` is negative if it is not known."""
    if rules.congestion == NSCC:
        nscc.on_ack(sender, rules, marked=marked, rtt_ps=rtt_ps, now_ps=now_ps)
    elif is_swift(rules):
        swift.on_ack(sender, rules, packets, rtt_ps, now_ps)


@part
def on_late_hole(sender, rules, now_ps):
    """Learn that the lowest hole is late. NSCC ignores that: it may be reordering."""
    if is_swift(rules):
        swift.on_late_hole(sender, rules, now_ps)


@part
def on_nack(sender, rules, now_ps):
    """Learn that a switch has cut a packet: for Swift's windows, a late hole.

    Other packets that the NACK reports have arrived, and let no window grow.
    """
    sender.counted = sender.acked
    if rules.congestion == NSCC:
        nscc.on_nack(sender, rules, now_ps)
    elif is_swift(rules):
        swift.on_late_hole(sender, rules, now_ps)


@part
def on_timeout(sender, rules, now_ps):
    """Learn that the lowest hole has timed out."""
    if is_swift(rules):
        swift.cut(sender, sender.window >> 1, now_ps)


@part
def on_timed_out(sender, rules):
    """Learn that a packet is sent again because it has timed out."""
    if rules.congestion == NSCC:
        nscc.give_up_a_packet(sender)
