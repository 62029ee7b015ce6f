"""Sections 9.5 to 9.9 and 12 of the P4Runtime specification 1.4: groups, sessions, digests."""

from __future__ import annotations

import pytest

from tests.emulation.softswitch.conformance.peer import exact, multicast, session
from tests.emulation.softswitch.conformance.rules import (
    ALREADY_EXISTS,
    EXHAUSTED,
    INVALID,
    KNOWN,
    NOT_FOUND,
    OK,
    UNIMPLEMENTED,
    Rule,
    delete,
    insert,
    modify,
    outcome,
    section,
)

GROUP = multicast(1, "port: '\\001'", "port: '\\002' instance: 7")
SESSION = session(1, "port: '\\001'")
DIGEST = "digest_entry { digest_id: $learn_t config { max_list_size: 2 } }"


def value_set(*values: int) -> str:
    """A value set with these members."""
    members = " ".join(f"members {{ {exact(value)} }}" for value in values)
    return f"value_set_entry {{ value_set_id: $chosen {members} }}"


MULTICAST = section(
    "9.5.1",
    insert("a multicast group", GROUP, OK),
    insert("the old form of a port", multicast(1, "egress_port: 1"), OK),
    insert("multicast_group_id greater than 0", multicast(0, "port: '\\001'"), INVALID),
    insert("the id within the target's range", multicast(65536, "port: '\\001'"), INVALID),
    insert(
        "instance within the target's range", multicast(1, "port: '\\001' instance: 65536"), INVALID
    ),
    insert(
        "unique (port, instance) pairs", multicast(1, "port: '\\001'", "port: '\\001'"), INVALID
    ),
    insert(
        "one port with two instances",
        multicast(1, "port: '\\001'", "port: '\\001' instance: 1"),
        OK,
    ),
    insert(
        "backup replicas are supported",
        multicast(1, "port: '\\001' backup_replicas { port: '\\002' }"),
        OK,
    ),
    insert("a group that already exists", GROUP, ALREADY_EXISTS, given=[GROUP]),
    modify("MODIFY needs the group", GROUP, NOT_FOUND),
    modify("MODIFY replaces the replicas", multicast(1), OK, given=[GROUP]),
    delete("DELETE needs the group", GROUP, NOT_FOUND),
    delete("DELETE by id alone", multicast(1), OK, given=[GROUP]),
)

CLONES = section(
    "9.5.2",
    insert("a clone session", SESSION, OK),
    insert("session_id greater than 0", session(0, "port: '\\001'"), INVALID),
    insert("a valid class of service", session(1, "port: '\\001'", more="class_of_service: 7"), OK),
    insert(
        "no valid class of service",
        session(1, "port: '\\001'", more="class_of_service: 8"),
        INVALID,
    ),
    insert(
        "a negative length", session(1, "port: '\\001'", more="packet_length_bytes: -1"), INVALID
    ),
    insert("a session that already exists", SESSION, ALREADY_EXISTS, given=[SESSION]),
    delete("DELETE needs the session", SESSION, NOT_FOUND),
)

VALUE_SETS = section(
    "9.6",
    modify("value set: MODIFY", value_set(7), OK),
    insert("value set: no INSERT", value_set(7), INVALID),
    delete("value set: no DELETE", value_set(), INVALID),
    modify("value set: more than its size", value_set(0, 1, 2), EXHAUSTED),
    modify("value set: duplicate members", value_set(7, 7), ALREADY_EXISTS),
)

DIGESTS = section(
    "9.8",
    insert("digest: INSERT enables it", DIGEST, OK),
    insert("digest: enabled already", DIGEST, ALREADY_EXISTS, given=[DIGEST]),
    modify("digest: MODIFY needs it enabled", DIGEST, NOT_FOUND),
    delete("digest: DELETE needs it enabled", DIGEST, NOT_FOUND),
    insert("digest: of the P4Info", "digest_entry { digest_id: 9 }", NOT_FOUND),
)

EXTERNS = section(
    "9.9",
    insert("externs of other architectures", "extern_entry { extern_type_id: 1 }", UNIMPLEMENTED),
)

UPDATES = section(
    "12",
    insert("an update has an entity", "", INVALID),
    Rule("an update has a type", "UNSPECIFIED", KNOWN, INVALID, given=()),
)


@pytest.mark.parametrize(
    "rule", [*MULTICAST, *CLONES, *VALUE_SETS, *DIGESTS, *EXTERNS, *UPDATES], ids=Rule.name
)
def test_an_update_of_another_entity(rule: Rule) -> None:
    """An update of a group, session, set or digest ends with the code of its rule."""
    assert outcome(rule) == rule.code
