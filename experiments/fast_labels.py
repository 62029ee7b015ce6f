"""Fast labels: one whose ACK came back sooner than most is used once more."""

from dataclasses import dataclass, field

from hostagent.transports.labels import random_label


@dataclass
class State:
    """`sent`: when a label left last, by its low bits; `fast`: a ring of labels that came soon."""

    sent: list[int] = field(default_factory=lambda: [0] * 256)
    fast: list[int] = field(default_factory=lambda: [0] * 16)
    kept: int = 0
    used: int = 0


def next_label(state, sender, rules, packets, now_ps):
    if state.used < state.kept:
        label = state.fast[state.used]
        state.used += 1
    else:
        label = random_label(sender, rules)

    state.sent[label] = now_ps
    return label


def on_ack(state, sender, rules, label, marked, now_ps):
    took_ps = now_ps - state.sent[label]
    if not marked and took_ps < sender.srtt_ps:
        state.fast[state.kept] = label
        state.kept += 1
        state.used = max(state.used, state.kept - len(state.fast))
