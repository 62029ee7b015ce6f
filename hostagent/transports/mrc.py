"""MRC: the entropy value of a packet, and the retirement of values after losses.

A value is good, is to be skipped once (its path was congested), or is retired (a packet of it was
lost). The sender takes good values in turn. A retired value rests for REST turns, then a packet
probes it; PROBES echoes in a row bring it back. The states are those of MRC's specification (GOOD,
SKIP, ASSUMED_BAD), but for those that an administrator denies.
"""

from hostagent.transports.parts import part
from hostagent.transports.state import COUNTED

# The specification has "periodically" (ours: 16 rounds of 128 packets, some four timeouts). Where
# most values are retired, every REST-th packet at most tests a value without an echo (ours). Credit
# for these lasts for a probe of half of the values.
REST = 16
# The specification has "enough" (ours).
PROBES = 3

# A value's state. Above SKIPPED it is retired: RETIRED at first, and one less after each turn that
# it has sat out, down to RESTED. PROBED is added when a probe has left, ECHO for each echo.
GOOD = 0
SKIPPED = 1
RESTED = 2
RETIRED = SKIPPED + REST
ECHO = 32
ECHOES = 3 * ECHO
PROBED = 128


@part
def next_label(connection, rules):
    """Return the label of the next value in turn that may be used."""
    # The walk ends: where all good values are to be skipped it comes round to the forgiven value,
    # without good values to the first value at the end of its rest.
    is_forgiven = False
    while True:
        value = next_value(connection, rules)
        state = int(connection.path_states[value])
        if state == GOOD:
            enough = rules.entropy_values // 2 * REST
            connection.credit = min(connection.credit + 1, enough)
            break

        if state == SKIPPED:
            # One in a walk: else a sender with many skipped values would forgive all of them.
            if not is_forgiven:
                connection.path_states[value] = GOOD
                is_forgiven = True
        elif state & (ECHO - 1) > RESTED:
            connection.path_states[value] = state - 1
        elif state & ECHOES or connection.credit >= REST or is_out(connection, rules):
            # In a row: the last probe without an echo takes those before it.
            echoes = 0 if state >= PROBED else state & ECHOES
            connection.path_states[value] = PROBED | echoes | RETIRED
            if not state & ECHOES:
                connection.credit = max(connection.credit - REST, 0)

            break

    # The upper bits are the flow's own: two flows' labels of one value lead through other links.
    return connection.label - connection.label % rules.entropy_values + value


@part
def next_value(connection, rules):
    """Return the value in turn and advance; a connection has its own order, which stays."""
    value = connection.turn ^ connection.turn_xor
    connection.turn = (connection.turn + 1) % rules.entropy_values

    return value


@part
def is_probed(connection, rules, label):
    """Return whether a probe of a label's value is under way."""
    return connection.path_states[label % rules.entropy_values] >= PROBED


@part
def is_out(connection, rules):
    """Return whether all values are retired: only probes may leave, a timeout apart."""
    return connection.retired == rules.entropy_values


@part
def on_echo(connection, rules, label, is_congested):
    """Learn that a packet of this label has reached the receiver, whole or cut."""
    value = label % rules.entropy_values
    state = int(connection.path_states[value])
    # Of a retired value only a probe's echo counts: older packets left before the loss.
    if state >= PROBED:
        connection.has_echo = 1
        if state & ECHOES == (PROBES - 1) * ECHO:
            connection.path_states[value] = SKIPPED if is_congested else GOOD
            connection.retired -= 1
            return

        connection.path_states[value] = (state & ECHOES) + ECHO + RESTED
        if is_out(connection, rules):
            # Else probes of all others would come before its next probe.
            connection.turn = value ^ connection.turn_xor
    elif state == GOOD and is_congested:
        connection.path_states[value] = SKIPPED


@part
def retire(connection, rules, label):
    """Retire the value of a lost packet; a retired value goes on resting, and loses its echoes."""
    value = label % rules.entropy_values
    state = int(connection.path_states[value])
    if state <= SKIPPED:
        connection.retired += 1

    if state <= SKIPPED or state & ECHOES:
        connection.path_states[value] = RETIRED


@part
def lose(connection, rules, packet):
    """Retire the values of a packet without an answer for a timeout: of its last two copies."""
    # Once: when the packet goes again, perhaps long after, its value may have come back.
    if packet.doubted == COUNTED:
        return

    retire(connection, rules, packet.label)
    if packet.doubted:
        retire(connection, rules, packet.doubted - 1)

    packet.doubted = COUNTED


@part
def doubt(rules, packet, label):
    """Remember the value of a late packet; its second copy leaves with `label`."""
    is_settled = packet.doubted == COUNTED or packet.label == label
    packet.doubted = 0 if is_settled else packet.label % rules.entropy_values + 1


@part
def on_copy(connection, rules, packet, label):
    """Learn from the ACK of a packet that was late which of its copies has arrived first.

    A second copy that comes before the first has gained a round trip on it: the first is lost. If
    the first comes it was only late (MRC's SACKs tell loss from reordering).
    """
    if 0 < packet.doubted < COUNTED:
        if packet.label == label:
            retire(connection, rules, packet.doubted - 1)

        packet.doubted = 0
