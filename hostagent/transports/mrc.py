"""MRC: the entropy value of a packet, and the retirement of values after losses.

A value is good, is to be skipped once (its path was congested), or is retired (a packet of it was
lost). The sender takes good values in turn. Every REST-th turn of a retired value is a probe: one
packet, with an echo that brings the value back. The states are those of MRC's specification (GOOD,
SKIP, ASSUMED_BAD), but for those that an administrator denies.
"""

from numba.extending import register_jitable

# The specification has "periodically" (ours: 16 rounds of 128 packets, some four timeouts).
REST = 16

# A value's state. Above SKIPPED it is retired, RETIRED at first and one less after each turn that
# it has sat out. PROBED is added when a probe has left.
GOOD = 0
SKIPPED = 1
RETIRED = SKIPPED + REST
PROBED = 128


@register_jitable
def next_label(connection, rules):
    """Return the label of the next value in turn that may be used."""
    # The walk ends: a sender without a good value comes round to the forgiven value, or to the
    # first retired value at the end of its rest.
    is_forgiven = False
    while True:
        value = next_value(connection, rules)
        state = int(connection.path_states[value])
        if state == SKIPPED and not is_forgiven:
            # One in a walk: else a sender with many skipped values would forgive all of them.
            connection.path_states[value] = GOOD
            is_forgiven = True
        elif state == GOOD:
            break
        elif state & (PROBED - 1) == SKIPPED + 1:
            connection.path_states[value] = PROBED + RETIRED
            break
        elif state != SKIPPED:
            connection.path_states[value] = state - 1

    # The upper bits are the flow's own: two flows' labels of one value lead through other links.
    return connection.label - connection.label % rules.entropy_values + value


@register_jitable
def next_value(connection, rules):
    """Return the value in turn and advance; a flow has its own order, which stays."""
    value = connection.turn ^ connection.turn_xor
    connection.turn = (connection.turn + 1) % rules.entropy_values

    return value


@register_jitable
def on_echo(connection, rules, label, is_congested):
    """Learn that a packet of this label has reached the receiver, whole or cut."""
    value = label % rules.entropy_values
    state = connection.path_states[value]
    # Of a retired value only a probe's echo counts: older packets left before the loss.
    if state >= PROBED:
        connection.path_states[value] = SKIPPED if is_congested else GOOD
    elif state == GOOD and is_congested:
        connection.path_states[value] = SKIPPED


@register_jitable
def retire(connection, rules, label):
    """Retire the value of a lost packet; a retired value goes on resting."""
    value = label % rules.entropy_values
    if connection.path_states[value] <= SKIPPED:
        connection.path_states[value] = RETIRED
