"""Calls of a user's host rule by kernels: C functions, and the addresses of their records.

The functions are compiled apart (`sim.arrays.host_rule_code`) and called through their addresses: a
rule takes seconds to compile, the kernels half a minute, and the same ones serve all rules.
"""

from fattree.policies import LabelRule
from hostagent.transports.state import PACKET, SENDER
from sim.kernels.jit import at, call, inlined

OWN = int(LabelRule.OWN)
SENDER_BYTES = SENDER.itemsize
PACKET_BYTES = PACKET.itemsize


@inlined
def next_label(world, flow, now_ps):
    """Return the label of the flow's packet that leaves at `now_ps`."""
    rule = world.own
    constant = world.flows.table[flow]
    label = call(
        rule.next_label,
        rule.states_at + flow * rule.state_bytes,
        rule.senders_at + world.flows.sender_of[at(flow)] * SENDER_BYTES,
        rule.rules_at,
        rule.packets_at + constant.ring * PACKET_BYTES,
        constant.ring_length,
        now_ps,
    )
    return label & 0xFFFF


@inlined
def on_ack(world, flow, label, marked, now_ps):
    """Learn from an ACK that echoes `label` and whether its data packet was marked."""
    rule = world.own
    call(
        rule.on_ack,
        rule.states_at + flow * rule.state_bytes,
        rule.senders_at + world.flows.sender_of[at(flow)] * SENDER_BYTES,
        rule.rules_at,
        label,
        marked,
        now_ps,
    )
