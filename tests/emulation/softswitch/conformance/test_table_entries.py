"""Sections 8.4 and 9.1 of the P4Runtime specification 1.4: updates of table entries."""

from __future__ import annotations

import pytest

from tests.emulation.softswitch.conformance.peer import action, between, entry, exact, lpm, ternary
from tests.emulation.softswitch.conformance.rules import (
    ALREADY_EXISTS,
    DENIED,
    EXHAUSTED,
    INVALID,
    KNOWN,
    NOT_FOUND,
    OK,
    OUT_OF_RANGE,
    Rule,
    delete,
    insert,
    modify,
    outcome,
    section,
)

DROP, FORWARD, NOTHING = action("drop"), action("forward", 3), action("NoAction")
BY_MEMBER = "action { action_profile_member_id: 1 }"
BY_GROUP = "action { action_profile_group_id: 1 }"
DEFAULT = "is_default_action: true"
SECOND = "idle_timeout_ns: 1000000000"

# A match that leaves nothing of a ternary table's key to say, where a rule is about the rest.
ANY = between(5, 6)

ENTRIES = section(
    "9.1",
    insert("an entry may be inserted", KNOWN, OK),
    insert("if the entity already exists", KNOWN, ALREADY_EXISTS, given=[KNOWN]),
    modify("MODIFY: if the entity does not exist", KNOWN, NOT_FOUND),
    delete("DELETE: if the entity does not exist", KNOWN, NOT_FOUND),
    delete(
        "DELETE: all other fields must be ignored",
        entry("exact_table", exact(5), "action { action { action_id: 9 } }"),
        OK,
        given=[KNOWN],
    ),
    insert(
        "keyless table: reject all attempts to INSERT", entry("keyless_table", FORWARD), INVALID
    ),
    insert(
        "cannot be inserted because of a size limitation",
        entry("lpm_table", lpm(5, 32), FORWARD),
        EXHAUSTED,
        given=[entry("lpm_table", lpm(i, 32), FORWARD) for i in range(4)],
    ),
    insert(
        "is_const must be false in any write",
        entry("exact_table", exact(5), DROP, "is_const: true"),
        INVALID,
    ),
    insert(
        "priority: zero without ternary, range, optional",
        entry("exact_table", exact(5), DROP, "priority: 1"),
        INVALID,
    ),
    insert(
        "priority: non-zero with ternary, range, optional",
        entry("ternary_table", ANY, DROP),
        INVALID,
    ),
    insert(
        "priority: a negative one is none",
        entry("ternary_table", ANY, DROP, "priority: -1"),
        INVALID,
    ),
    insert(
        "entries may have the same priority",
        entry("ternary_table", between(7, 8), DROP, "priority: 1"),
        OK,
        given=[entry("ternary_table", ANY, DROP, "priority: 1")],
    ),
)

MATCHES = section(
    "9.1.1",
    insert("exact match fields can never be omitted", entry("exact_table", DROP), INVALID),
    insert(
        "field_id must be a valid id for the table",
        entry("exact_table", exact(5), exact(5, 9), DROP),
        INVALID,
    ),
    insert("a field is given once", entry("exact_table", exact(5), exact(5), DROP), INVALID),
    insert(
        "one of the fields in field_match_type must be set",
        entry("exact_table", "match { field_id: 1 }", DROP),
        INVALID,
    ),
    insert("the match type is that of the P4Info", entry("lpm_table", exact(5), FORWARD), INVALID),
    insert(
        "LPM: a don't care match must be omitted", entry("lpm_table", lpm(0, 0), FORWARD), INVALID
    ),
    insert(
        "LPM: don't care bits must be 0 in value",
        entry("lpm_table", lpm(0x0A000001, 8), FORWARD),
        INVALID,
    ),
    insert(
        "LPM: a prefix is not longer than the field",
        entry("lpm_table", lpm(1, 33), FORWARD),
        INVALID,
    ),
    insert("LPM: an omitted field matches all", entry("lpm_table", FORWARD), OK),
    insert(
        "TERNARY: a don't care match must be omitted",
        entry("ternary_table", ternary(0, 0), DROP, "priority: 1"),
        INVALID,
    ),
    insert(
        "TERNARY: masked bits must be 0 in value",
        entry("ternary_table", ternary(3, 1), DROP, "priority: 1"),
        INVALID,
    ),
    insert(
        "RANGE: low must not be above high",
        entry("ternary_table", between(6, 5), DROP, "priority: 1"),
        INVALID,
    ),
    insert(
        "RANGE: a don't care match must be omitted",
        entry("ternary_table", between(0, 65535), DROP, "priority: 1"),
        INVALID,
    ),
    insert(
        "OPTIONAL: a value",
        entry(
            "ternary_table",
            "match { field_id: 3 optional { value: '\\005' } }",
            DROP,
            "priority: 1",
        ),
        OK,
    ),
    insert("the table is one of the P4Info", "table_entry { table_id: 7 }", NOT_FOUND),
)

ACTIONS = section(
    "9.1.2",
    insert("the action must be set for every INSERT", entry("exact_table", exact(5)), INVALID),
    modify("and may be left unset for MODIFY", entry("exact_table", exact(5)), OK, given=[KNOWN]),
    insert("a member for a direct table", entry("exact_table", exact(5), BY_MEMBER), INVALID),
    insert("an action for an indirect table", entry("indirect_table", exact(5), FORWARD), INVALID),
    insert(
        "a group for a profile without selector",
        entry("indirect_table", exact(5), BY_GROUP),
        INVALID,
    ),
    insert(
        "action_id must match one of the table's", entry("lpm_table", lpm(5, 32), DROP), INVALID
    ),
    insert(
        "DEFAULT_ONLY in an entry", entry("exact_table", exact(5), action("default_only")), DENIED
    ),
    modify("TABLE_ONLY as default", entry("exact_table", action("special_only"), DEFAULT), DENIED),
    insert("a parameter id is missing", entry("exact_table", exact(5), action("forward")), INVALID),
    insert("an extra parameter", entry("exact_table", exact(5), action("forward", 1, 2)), INVALID),
    insert(
        "a member that has not been inserted",
        entry("indirect_table", exact(5), BY_MEMBER),
        NOT_FOUND,
    ),
    insert(
        "a group that has not been inserted", entry("selected_table", exact(5), BY_GROUP), NOT_FOUND
    ),
)

BYTESTRINGS = section(
    "8.4",
    insert(
        "an empty string is always rejected", entry("exact_table", exact(b""), DROP), OUT_OF_RANGE
    ),
    insert("a value beyond its width", entry("exact_table", exact(256), DROP), OUT_OF_RANGE),
    insert("leading zero bytes are accepted", entry("exact_table", exact(b"\0\0\5"), DROP), OK),
    insert(
        "an argument beyond its width",
        entry("exact_table", exact(5), action("forward", 512)),
        OUT_OF_RANGE,
    ),
)

DEFAULTS = section(
    "9.1.3",
    insert("default entry: no INSERT", entry("exact_table", DROP, DEFAULT), INVALID),
    delete("default entry: no DELETE", entry("exact_table", DROP, DEFAULT), INVALID),
    modify(
        "default entry: match must be empty", entry("exact_table", exact(5), DROP, DEFAULT), INVALID
    ),
    modify(
        "default entry: priority must be zero",
        entry("exact_table", DROP, DEFAULT, "priority: 1"),
        INVALID,
    ),
    modify("default entry: a valid action", entry("exact_table", DROP, DEFAULT), OK),
    modify("default entry: of a keyless table too", entry("keyless_table", FORWARD, DEFAULT), OK),
    modify("default entry: constant", entry("ternary_table", DROP, DEFAULT), DENIED),
    modify(
        "default entry: constant in indirect tables",
        entry("indirect_table", NOTHING, DEFAULT),
        DENIED,
    ),
)

CONSTANTS = section(
    "9.1.4",
    insert("constant table: INSERT", entry("const_table", exact(5), FORWARD), DENIED),
    delete("constant table: DELETE", entry("const_table", exact(200)), DENIED),
    modify(
        "constant table: MODIFY of the action",
        entry("const_table", exact(200), action("forward", 2)),
        DENIED,
    ),
    modify("constant table: MODIFY without action", entry("const_table", exact(200)), OK),
    modify(
        "constant table: the default action may change", entry("const_table", FORWARD, DEFAULT), OK
    ),
)

DIRECT_RESOURCES = section(
    "9.1.7",
    insert(
        "counter_data without a direct counter",
        entry("lpm_table", lpm(5, 32), FORWARD, "counter_data { packet_count: 1 }"),
        INVALID,
    ),
    insert(
        "meter_config without a direct meter",
        entry("exact_table", exact(5), DROP, "meter_config { cir: 1 pir: 1 }"),
        INVALID,
    ),
    insert(
        "meter_counter_data can only be zero",
        entry(
            "metered_table",
            exact(5),
            action("police"),
            "meter_counter_data { green { packet_count: 1 } }",
        ),
        INVALID,
    ),
    insert(
        "direct resources at once with the entry",
        entry(
            "metered_table",
            exact(5),
            action("police"),
            "meter_config { cir: 1 cburst: 2 pir: 3 pburst: 4 }",
        ),
        OK,
    ),
)

TIMEOUTS = section(
    "9.1.8",
    insert(
        "idle timeout where it is not supported",
        entry("exact_table", exact(5), DROP, SECOND),
        INVALID,
    ),
    insert(
        "idle timeout where it is supported", entry("idle_table", exact(5), NOTHING, SECOND), OK
    ),
    insert(
        "a negative timeout", entry("idle_table", exact(5), NOTHING, "idle_timeout_ns: -1"), INVALID
    ),
    insert(
        "time_since_last_hit must be unset in a write",
        entry("idle_table", exact(5), NOTHING, "time_since_last_hit { }"),
        INVALID,
    ),
    modify(
        "no idle timeout for default entries",
        entry("idle_table", NOTHING, DEFAULT, SECOND),
        INVALID,
    ),
)


@pytest.mark.parametrize(
    "rule",
    [
        *ENTRIES,
        *MATCHES,
        *ACTIONS,
        *BYTESTRINGS,
        *DEFAULTS,
        *CONSTANTS,
        *DIRECT_RESOURCES,
        *TIMEOUTS,
    ],
)
def test_an_update_of_a_table_entry(rule: Rule) -> None:
    """An update of a table entry ends with the code of its rule."""
    assert outcome(rule) == rule.code
