"""Checks that the user's frames have the fields by which our P4 programs balance.

A program reads bytes without their meaning: ECMP hashes the five-tuple, Themis takes the bytes of a
BTH behind UDP for a number. Where the user's packets have the label or the number elsewhere, such a
load balancer runs, but not as its name promises.
"""

from collections.abc import Iterable

import numpy as np

from fattree.demand import traffic
from fattree.experiment.model import Scenario
from fattree.policies import Chooser, LabelRule
from hostagent.forms import BITS, Form, Forms
from hostagent.own_packet import own_forms
from hostagent.transports.roce import IPV4, ROCE_PORT

ETHERNET = 14
# From an IPv4 header on: addresses, UDP's ports, and the PSN of a BTH behind UDP.
ADDRESSES = range(12, 20)
PORTS = range(20, 24)
DESTINATION_PORT = 22
PSN_AT = IPV4 + 8 + 9
HASHED = (
    "its switches hash the five-tuple, where {file} has {bits} of the {all} bits of flow.label"
    " (UDP's sport is the place for it)"
)
NUMBERED = "its switches take the PSN of a BTH behind UDP, where {file} has no flow.psn"
BEFORE_IPV4 = "its switches know no header between Ethernet and IPv4, and {file} has one"


def misfits(scenarios: Iterable[Scenario]) -> list[str]:
    """Return lines on load balancers that our programs cannot run with the user's packets.

    Switches of all scenarios run these programs. Raises ExperimentError.
    """
    first: dict[str, Scenario] = {}
    for scenario in scenarios:
        if scenario.agent_packet:
            first.setdefault(scenario.balancer_label, scenario)

    reasons: dict[str, list[str]] = {}
    for label, scenario in first.items():
        if reason := _misfit(scenario):
            reasons.setdefault(reason, []).append(label)

    return [
        f"no fair comparison with {', '.join(labels)}: {reason}"
        for reason, labels in reasons.items()
    ]


def _misfit(scenario: Scenario) -> str:
    packet = scenario.agent_packet
    assert packet is not None
    both = own_forms(packet.text, packet.file, scenario.packets.payload_bytes)
    chooser = scenario.scheme.chooser
    if both.data.ip_at != ETHERNET:
        return BEFORE_IPV4.format(file=packet.file)

    if chooser is Chooser.NUMBERED and not all(map(_has_psn, both)):
        return NUMBERED.format(file=packet.file)

    bits = hashed_label_bits(both)
    if chooser is not Chooser.HASH or bits == BITS["label"] or not _has_labels(scenario):
        return ""

    return HASHED.format(file=packet.file, bits=bits or "none", all=BITS["label"])


def hashed_label_bits(both: Forms) -> int:
    """Return how many of the label's bits stand in the five-tuple of all frames."""
    return min(len(_hashed(form)) for form in both)


def _hashed(form: Form) -> set[int]:
    hashed = {form.ip_at + offset for offset in (*ADDRESSES, *(PORTS if form.is_udp else ()))}
    return {
        run.of + bit
        for run in form.runs["label"]
        for bit in range(run.mask.bit_length())
        if run.at + run.size - 1 - (run.low + bit) // 8 in hashed
    }


def _has_psn(form: Form) -> bool:
    port = form.template[form.ip_at + DESTINATION_PORT :][:2]
    is_roce = form.is_udp and int.from_bytes(port, "big") == ROCE_PORT
    return is_roce and _stands_at(form, "psn", PSN_AT)


def _stands_at(form: Form, field: str, offset: int) -> bool:
    """Return whether all bits of a field stand together, so far behind the IPv4 header's start."""
    return any(
        (run.at, run.low, run.mask.bit_length()) == (form.ip_at + offset, 0, BITS[field])
        for run in form.runs[field]
    )


def _has_labels(scenario: Scenario) -> bool:
    """Return whether packets with equal addresses may differ in their labels."""
    scheme = scenario.scheme
    if scenario.host_rule or scheme.label_rule is not LabelRule.FIXED or scheme.subflows > 1:
        return True

    flows = traffic.flows(scenario)
    ends = np.stack([flows.source, flows.destination])
    return bool(np.unique(ends, axis=1).shape[1] < ends.shape[1])
