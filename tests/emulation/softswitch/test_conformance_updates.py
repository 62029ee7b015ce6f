"""What the P4Runtime specification 1.4 says about single updates."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.emulation.softswitch.conformance import (
    Peer,
    action,
    between,
    entry,
    exact,
    group,
    lpm,
    member,
    multicast,
    one_shot,
    plain,
    session,
    ternary,
)


class Rule(NamedTuple):
    """One rule: after the entities of `before` are inserted, `kind` of `what` ends with `code`."""

    section: str
    words: str
    kind: str
    what: str
    code: str
    before: tuple[str, ...] = ()


DROP, FORWARD = action("drop"), action("forward", 3)
KNOWN = entry("exact_table", exact(5), DROP)
MEMBER, GROUP = member(1), group(1, "1 1")
BY_MEMBER = "action { action_profile_member_id: 1 }"
BY_GROUP = "action { action_profile_group_id: 1 }"
DEFAULT = "is_default_action: true"
ZERO, SECOND = "idle_timeout_ns: 0", "idle_timeout_ns: 1000000000"
NOTHING = action("NoAction")
ANY = between(5, 6)

TABLES = [
    Rule("9.1", "an entry may be inserted", "INSERT", KNOWN, "OK"),
    Rule("9.1", "if the entity already exists", "INSERT", KNOWN, "ALREADY_EXISTS", (KNOWN,)),
    Rule("9.1", "MODIFY: if the entity does not exist", "MODIFY", KNOWN, "NOT_FOUND"),
    Rule("9.1", "DELETE: if the entity does not exist", "DELETE", KNOWN, "NOT_FOUND"),
    Rule(
        "9.1",
        "DELETE: all other fields must be ignored",
        "DELETE",
        entry("exact_table", exact(5), "action { action { action_id: 9 } }"),
        "OK",
        (KNOWN,),
    ),
    Rule(
        "9.1",
        "keyless table: reject all attempts to INSERT",
        "INSERT",
        entry("keyless_table", FORWARD),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1",
        "cannot be inserted because of a size limitation",
        "INSERT",
        entry("lpm_table", lpm(5, 32), FORWARD),
        "RESOURCE_EXHAUSTED",
        tuple(entry("lpm_table", lpm(i, 32), FORWARD) for i in range(4)),
    ),
    Rule(
        "9.1",
        "is_const must be false in any write",
        "INSERT",
        entry("exact_table", exact(5), DROP, "is_const: true"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1",
        "priority: zero without ternary, range, optional",
        "INSERT",
        entry("exact_table", exact(5), DROP, "priority: 1"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1",
        "priority: non-zero with ternary, range, optional",
        "INSERT",
        entry("ternary_table", ANY, DROP),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1",
        "priority: a negative one is none",
        "INSERT",
        entry("ternary_table", ANY, DROP, "priority: -1"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1",
        "entries may have the same priority",
        "INSERT",
        entry("ternary_table", between(7, 8), DROP, "priority: 1"),
        "OK",
        (entry("ternary_table", ANY, DROP, "priority: 1"),),
    ),
    Rule(
        "9.1.1",
        "exact match fields can never be omitted",
        "INSERT",
        entry("exact_table", DROP),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "field_id must be a valid id for the table",
        "INSERT",
        entry("exact_table", exact(5), exact(5, 9), DROP),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "a field is given once",
        "INSERT",
        entry("exact_table", exact(5), exact(5), DROP),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "one of the fields in field_match_type must be set",
        "INSERT",
        entry("exact_table", "match { field_id: 1 }", DROP),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "the match type is that of the P4Info",
        "INSERT",
        entry("lpm_table", exact(5), FORWARD),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "LPM: a don't care match must be omitted",
        "INSERT",
        entry("lpm_table", lpm(0, 0), FORWARD),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "LPM: don't care bits must be 0 in value",
        "INSERT",
        entry("lpm_table", lpm(0x0A000001, 8), FORWARD),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "LPM: a prefix is not longer than the field",
        "INSERT",
        entry("lpm_table", lpm(1, 33), FORWARD),
        "INVALID_ARGUMENT",
    ),
    Rule("9.1.1", "LPM: an omitted field matches all", "INSERT", entry("lpm_table", FORWARD), "OK"),
    Rule(
        "9.1.1",
        "TERNARY: a don't care match must be omitted",
        "INSERT",
        entry("ternary_table", ternary(0, 0), DROP, "priority: 1"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "TERNARY: masked bits must be 0 in value",
        "INSERT",
        entry("ternary_table", ternary(3, 1), DROP, "priority: 1"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "RANGE: low must not be above high",
        "INSERT",
        entry("ternary_table", between(6, 5), DROP, "priority: 1"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "RANGE: a don't care match must be omitted",
        "INSERT",
        entry("ternary_table", between(0, 65535), DROP, "priority: 1"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.1",
        "OPTIONAL: a value",
        "INSERT",
        entry(
            "ternary_table",
            "match { field_id: 3 optional { value: '\\005' } }",
            DROP,
            "priority: 1",
        ),
        "OK",
    ),
    Rule(
        "9.1.1",
        "the table is one of the P4Info",
        "INSERT",
        "table_entry { table_id: 7 }",
        "NOT_FOUND",
    ),
    Rule(
        "9.1.2",
        "the action must be set for every INSERT",
        "INSERT",
        entry("exact_table", exact(5)),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.2",
        "and may be left unset for MODIFY",
        "MODIFY",
        entry("exact_table", exact(5)),
        "OK",
        (KNOWN,),
    ),
    Rule(
        "9.1.2",
        "a member for a direct table",
        "INSERT",
        entry("exact_table", exact(5), BY_MEMBER),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.2",
        "an action for an indirect table",
        "INSERT",
        entry("indirect_table", exact(5), FORWARD),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.2",
        "a group for a profile without selector",
        "INSERT",
        entry("indirect_table", exact(5), BY_GROUP),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.2",
        "action_id must match one of the table's",
        "INSERT",
        entry("lpm_table", lpm(5, 32), DROP),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.2",
        "DEFAULT_ONLY in an entry",
        "INSERT",
        entry("exact_table", exact(5), action("default_only")),
        "PERMISSION_DENIED",
    ),
    Rule(
        "9.1.2",
        "TABLE_ONLY as default",
        "MODIFY",
        entry("exact_table", action("special_only"), DEFAULT),
        "PERMISSION_DENIED",
    ),
    Rule(
        "9.1.2",
        "a parameter id is missing",
        "INSERT",
        entry("exact_table", exact(5), action("forward")),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.2",
        "an extra parameter",
        "INSERT",
        entry("exact_table", exact(5), action("forward", 1, 2)),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.2",
        "a member that has not been inserted",
        "INSERT",
        entry("indirect_table", exact(5), BY_MEMBER),
        "NOT_FOUND",
    ),
    Rule(
        "9.1.2",
        "a group that has not been inserted",
        "INSERT",
        entry("selected_table", exact(5), BY_GROUP),
        "NOT_FOUND",
    ),
    Rule(
        "8.4",
        "an empty string is always rejected",
        "INSERT",
        entry("exact_table", exact(b""), DROP),
        "OUT_OF_RANGE",
    ),
    Rule(
        "8.4",
        "a value beyond its width",
        "INSERT",
        entry("exact_table", exact(256), DROP),
        "OUT_OF_RANGE",
    ),
    Rule(
        "8.4",
        "leading zero bytes are accepted",
        "INSERT",
        entry("exact_table", exact(b"\0\0\5"), DROP),
        "OK",
    ),
    Rule(
        "8.4",
        "an argument beyond its width",
        "INSERT",
        entry("exact_table", exact(5), action("forward", 512)),
        "OUT_OF_RANGE",
    ),
    Rule(
        "9.1.3",
        "default entry: no INSERT",
        "INSERT",
        entry("exact_table", DROP, DEFAULT),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.3",
        "default entry: no DELETE",
        "DELETE",
        entry("exact_table", DROP, DEFAULT),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.3",
        "default entry: match must be empty",
        "MODIFY",
        entry("exact_table", exact(5), DROP, DEFAULT),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.3",
        "default entry: priority must be zero",
        "MODIFY",
        entry("exact_table", DROP, DEFAULT, "priority: 1"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.3",
        "default entry: a valid action",
        "MODIFY",
        entry("exact_table", DROP, DEFAULT),
        "OK",
    ),
    Rule(
        "9.1.3",
        "default entry: of a keyless table too",
        "MODIFY",
        entry("keyless_table", FORWARD, DEFAULT),
        "OK",
    ),
    Rule(
        "9.1.3",
        "default entry: constant",
        "MODIFY",
        entry("ternary_table", DROP, DEFAULT),
        "PERMISSION_DENIED",
    ),
    Rule(
        "9.1.3",
        "default entry: constant in indirect tables",
        "MODIFY",
        entry("indirect_table", NOTHING, DEFAULT),
        "PERMISSION_DENIED",
    ),
    Rule(
        "9.1.4",
        "constant table: INSERT",
        "INSERT",
        entry("const_table", exact(5), FORWARD),
        "PERMISSION_DENIED",
    ),
    Rule(
        "9.1.4",
        "constant table: DELETE",
        "DELETE",
        entry("const_table", exact(200)),
        "PERMISSION_DENIED",
    ),
    Rule(
        "9.1.4",
        "constant table: MODIFY of the action",
        "MODIFY",
        entry("const_table", exact(200), action("forward", 2)),
        "PERMISSION_DENIED",
    ),
    Rule(
        "9.1.4",
        "constant table: MODIFY without action",
        "MODIFY",
        entry("const_table", exact(200)),
        "OK",
    ),
    Rule(
        "9.1.4",
        "constant table: the default action may change",
        "MODIFY",
        entry("const_table", FORWARD, DEFAULT),
        "OK",
    ),
    Rule(
        "9.1.7",
        "counter_data without a direct counter",
        "INSERT",
        entry("lpm_table", lpm(5, 32), FORWARD, "counter_data { packet_count: 1 }"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.7",
        "meter_config without a direct meter",
        "INSERT",
        entry("exact_table", exact(5), DROP, "meter_config { cir: 1 pir: 1 }"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.7",
        "meter_counter_data can only be zero",
        "INSERT",
        entry(
            "metered_table",
            exact(5),
            action("police"),
            "meter_counter_data { green { packet_count: 1 } }",
        ),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.7",
        "direct resources at once with the entry",
        "INSERT",
        entry(
            "metered_table",
            exact(5),
            action("police"),
            "meter_config { cir: 1 cburst: 2 pir: 3 pburst: 4 }",
        ),
        "OK",
    ),
    Rule(
        "9.1.8",
        "idle timeout where it is not supported",
        "INSERT",
        entry("exact_table", exact(5), DROP, SECOND),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.8",
        "idle timeout where it is supported",
        "INSERT",
        entry("idle_table", exact(5), NOTHING, SECOND),
        "OK",
    ),
    Rule(
        "9.1.8",
        "a negative timeout",
        "INSERT",
        entry("idle_table", exact(5), NOTHING, "idle_timeout_ns: -1"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.8",
        "time_since_last_hit must be unset in a write",
        "INSERT",
        entry("idle_table", exact(5), NOTHING, "time_since_last_hit { }"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.1.8",
        "no idle timeout for default entries",
        "MODIFY",
        entry("idle_table", NOTHING, DEFAULT, SECOND),
        "INVALID_ARGUMENT",
    ),
]

PROFILES = [
    Rule("9.2.1", "a member may be inserted", "INSERT", MEMBER, "OK"),
    Rule("9.2.1", "the member id must be different", "INSERT", MEMBER, "ALREADY_EXISTS", (MEMBER,)),
    Rule(
        "9.2.1",
        "the action must be provided",
        "INSERT",
        "action_profile_member { action_profile_id: $choices member_id: 1 }",
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.2.1",
        "an action of the table only",
        "INSERT",
        member(1, plain("drop")),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.2.1",
        "more members than the maximum",
        "INSERT",
        member(4, profile="members"),
        "RESOURCE_EXHAUSTED",
        tuple(member(i, profile="members") for i in (1, 2, 3)),
    ),
    Rule(
        "9.2.1",
        "member_id is non-zero",
        "INSERT",
        member(0, plain("forward", 1)),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.2.1",
        "the profile is one of the P4Info",
        "INSERT",
        "action_profile_member { action_profile_id: 9 member_id: 1 }",
        "NOT_FOUND",
    ),
    Rule("9.2.1", "MODIFY needs the member", "MODIFY", MEMBER, "NOT_FOUND"),
    Rule(
        "9.2.1",
        "MODIFY needs the action",
        "MODIFY",
        "action_profile_member { action_profile_id: $choices member_id: 1 }",
        "INVALID_ARGUMENT",
        (MEMBER,),
    ),
    Rule("9.2.1", "DELETE needs the member", "DELETE", MEMBER, "NOT_FOUND"),
    Rule(
        "9.2.1",
        "DELETE ignores every other field",
        "DELETE",
        member(1, plain("drop")),
        "OK",
        (MEMBER,),
    ),
    Rule(
        "9.2.1",
        "DELETE: not part of a group",
        "DELETE",
        MEMBER,
        "FAILED_PRECONDITION",
        (MEMBER, GROUP),
    ),
    Rule(
        "9.2.1",
        "DELETE: not referenced by a table entry",
        "DELETE",
        MEMBER,
        "FAILED_PRECONDITION",
        (MEMBER, entry("selected_table", exact(5), BY_MEMBER)),
    ),
    Rule("9.2.2", "a group of existing members", "INSERT", GROUP, "OK", (MEMBER,)),
    Rule("9.2.2", "an empty group", "INSERT", group(1), "OK"),
    Rule(
        "9.2.2",
        "the group id must be different",
        "INSERT",
        GROUP,
        "ALREADY_EXISTS",
        (MEMBER, GROUP),
    ),
    Rule("9.2.2", "all members must exist", "INSERT", GROUP, "NOT_FOUND"),
    Rule(
        "9.2.2", "no member twice", "INSERT", group(1, "1 1", "1 2"), "INVALID_ARGUMENT", (MEMBER,)
    ),
    Rule(
        "9.2.2", "0 is not a valid weight", "INSERT", group(1, "1 0"), "INVALID_ARGUMENT", (MEMBER,)
    ),
    Rule("9.2.2", "a negative weight", "INSERT", group(1, "1 -1"), "INVALID_ARGUMENT", (MEMBER,)),
    Rule("9.2.2", "group_id is non-zero", "INSERT", group(0, "1 1"), "INVALID_ARGUMENT", (MEMBER,)),
    Rule(
        "9.2.2",
        "watch_port of an existing port",
        "INSERT",
        group(1, "1 1 watch_port: '\\003'"),
        "OK",
        (MEMBER,),
    ),
    Rule(
        "9.2.2",
        "watch_port of no existing port",
        "INSERT",
        group(1, "1 1 watch_port: '\\143'"),
        "INVALID_ARGUMENT",
        (MEMBER,),
    ),
    Rule(
        "9.2.2",
        "a group of a profile without selector",
        "INSERT",
        group(1, profile="members"),
        "INVALID_ARGUMENT",
    ),
    Rule("9.2.2", "MODIFY needs the group", "MODIFY", GROUP, "NOT_FOUND", (MEMBER,)),
    Rule(
        "9.2.2",
        "MODIFY: the members must exist",
        "MODIFY",
        group(1, "1 1", "2 1"),
        "NOT_FOUND",
        (MEMBER, GROUP),
    ),
    Rule("9.2.2", "DELETE needs the group", "DELETE", GROUP, "NOT_FOUND"),
    Rule(
        "9.2.2",
        "DELETE: not referenced by a table entry",
        "DELETE",
        GROUP,
        "FAILED_PRECONDITION",
        (MEMBER, GROUP, entry("selected_table", exact(5), BY_GROUP)),
    ),
    Rule(
        "9.2.2",
        "max_size must not be changed",
        "MODIFY",
        group(1, "1 1", more="max_size: 3"),
        "INVALID_ARGUMENT",
        (MEMBER, group(1, "1 1", more="max_size: 2")),
    ),
    Rule(
        "9.2.2",
        "weights within max_size",
        "INSERT",
        group(1, "1 3", more="max_size: 2"),
        "RESOURCE_EXHAUSTED",
        (MEMBER,),
    ),
    Rule(
        "9.2.3",
        "a one-shot",
        "INSERT",
        entry("selected_table", exact(5), one_shot("1 1", "2 3")),
        "OK",
    ),
    Rule(
        "9.2.3",
        "one-shot: the same action twice",
        "INSERT",
        entry("selected_table", exact(5), one_shot("1 1", "1 1")),
        "OK",
    ),
    Rule(
        "9.2.3",
        "one-shot: 0 is not a valid weight",
        "INSERT",
        entry("selected_table", exact(5), one_shot("1 0")),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.2.3",
        "one-shot: watch_port must exist",
        "INSERT",
        entry("selected_table", exact(5), one_shot("1 1 watch_port: '\\143'")),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.2.3",
        "one-shot: only with a selector",
        "INSERT",
        entry("indirect_table", exact(5), one_shot("1 1")),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.2.3",
        "one-shot: not beside members",
        "INSERT",
        entry("selected_table", exact(5), one_shot("1 1")),
        "INVALID_ARGUMENT",
        (MEMBER,),
    ),
    Rule(
        "9.2.3",
        "members not beside one-shots",
        "INSERT",
        MEMBER,
        "INVALID_ARGUMENT",
        (entry("selected_table", exact(5), one_shot("1 1")),),
    ),
    Rule(
        "9.2.3",
        "one-shot: more than the selector holds",
        "INSERT",
        entry("selected_table", exact(5), one_shot(*(f"{i} 1" for i in range(9)))),
        "RESOURCE_EXHAUSTED",
    ),
]


def cell(kind: str, name: str, rest: str = "") -> str:
    """A counter, meter or register entry."""
    return f"{kind}_entry {{ {kind}_id: {name} {rest} }}"


DATA = "data { packet_count: 1 byte_count: 2 }"
CONFIG = "config { cir: 1 cburst: 2 pir: 3 pburst: 4 }"
BITS = "data { bitstring: '\\017' }"
OF_KNOWN = "table_entry { table_id: $exact_table " + exact(5) + " }"
METERED = entry("metered_table", exact(5), action("police"))
OF_METERED = "table_entry { table_id: $metered_table " + exact(5) + " }"

ARRAYS = [
    *(
        rule
        for section, kind, name, data in (
            ("9.3", "counter", "$counted", DATA),
            ("9.4", "meter", "$metered", CONFIG),
            ("9.7", "register", "$cells", BITS),
        )
        for rule in (
            Rule(
                section,
                f"{kind}: MODIFY of a cell",
                "MODIFY",
                cell(kind, name, f"index {{ index: 3 }} {data}"),
                "OK",
            ),
            Rule(section, f"{kind}: MODIFY of all cells", "MODIFY", cell(kind, name, data), "OK"),
            Rule(
                section,
                f"{kind}: no INSERT",
                "INSERT",
                cell(kind, name, f"index {{ index: 3 }} {data}"),
                "INVALID_ARGUMENT",
            ),
            Rule(
                section,
                f"{kind}: no DELETE",
                "DELETE",
                cell(kind, name, f"index {{ index: 3 }} {data}"),
                "INVALID_ARGUMENT",
            ),
            Rule(
                section,
                f"{kind}: a negative index",
                "MODIFY",
                cell(kind, name, f"index {{ index: -1 }} {data}"),
                "INVALID_ARGUMENT",
            ),
            Rule(
                section,
                f"{kind}: an index beyond the array",
                "MODIFY",
                cell(kind, name, f"index {{ index: 4 }} {data}"),
                "OUT_OF_RANGE",
            ),
            Rule(section, f"{kind}: of the P4Info", "MODIFY", cell(kind, "9", data), "NOT_FOUND"),
        )
    ),
    Rule(
        "9.3",
        "direct counter: of an existing entry",
        "MODIFY",
        f"direct_counter_entry {{ {OF_KNOWN} {DATA} }}",
        "OK",
        (KNOWN,),
    ),
    Rule(
        "9.3",
        "direct counter: no such entry",
        "MODIFY",
        f"direct_counter_entry {{ {OF_KNOWN} {DATA} }}",
        "NOT_FOUND",
    ),
    Rule(
        "9.3",
        "direct counter: no INSERT",
        "INSERT",
        f"direct_counter_entry {{ {OF_KNOWN} {DATA} }}",
        "INVALID_ARGUMENT",
        (KNOWN,),
    ),
    Rule(
        "9.3",
        "direct counter: no DELETE",
        "DELETE",
        f"direct_counter_entry {{ {OF_KNOWN} {DATA} }}",
        "INVALID_ARGUMENT",
        (KNOWN,),
    ),
    Rule(
        "9.4",
        "direct meter: of an existing entry",
        "MODIFY",
        f"direct_meter_entry {{ {OF_METERED} {CONFIG} }}",
        "OK",
        (METERED,),
    ),
    Rule(
        "9.4",
        "direct meter: no such entry",
        "MODIFY",
        f"direct_meter_entry {{ {OF_METERED} {CONFIG} }}",
        "NOT_FOUND",
    ),
    Rule(
        "9.4",
        "direct meter: no INSERT",
        "INSERT",
        f"direct_meter_entry {{ {OF_METERED} {CONFIG} }}",
        "INVALID_ARGUMENT",
        (METERED,),
    ),
    Rule(
        "9.4",
        "direct meter: a table without",
        "MODIFY",
        f"direct_meter_entry {{ {OF_KNOWN} {CONFIG} }}",
        "INVALID_ARGUMENT",
        (KNOWN,),
    ),
    Rule(
        "9.4",
        "a two-rate meter has no eburst",
        "MODIFY",
        cell("meter", "$metered", "config { cir: 1 pir: 1 eburst: 1 }"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.4",
        "the committed rate is not above the peak",
        "MODIFY",
        cell("meter", "$metered", "config { cir: 2 pir: 1 }"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.4",
        "colour counters can only be cleared",
        "MODIFY",
        cell("meter", "$metered", "counter_data { red { byte_count: 1 } }"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.4",
        "direct meter: colour counters can only be cleared",
        "MODIFY",
        f"direct_meter_entry {{ {OF_METERED} counter_data {{ red {{ byte_count: 1 }} }} }}",
        "INVALID_ARGUMENT",
        (METERED,),
    ),
    Rule(
        "9.7",
        "register data in the format of its type",
        "MODIFY",
        cell("register", "$cells", "data { bool: true }"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.7",
        "register data within its width",
        "MODIFY",
        cell("register", "$cells", "data { bitstring: '\\020\\000' }"),
        "OUT_OF_RANGE",
    ),
]

TWO = multicast(1, "port: '\\001'", "port: '\\002' instance: 7")
MIRROR = session(1, "port: '\\001'")
VALUES = "value_set_entry { value_set_id: $chosen "
DIGEST = "digest_entry { digest_id: $learn_t config { max_list_size: 2 } }"

OTHERS = [
    Rule("9.5.1", "a multicast group", "INSERT", TWO, "OK"),
    Rule("9.5.1", "the old form of a port", "INSERT", multicast(1, "egress_port: 1"), "OK"),
    Rule(
        "9.5.1",
        "multicast_group_id greater than 0",
        "INSERT",
        multicast(0, "port: '\\001'"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.5.1",
        "the id within the target's range",
        "INSERT",
        multicast(65536, "port: '\\001'"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.5.1",
        "instance within the target's range",
        "INSERT",
        multicast(1, "port: '\\001' instance: 65536"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.5.1",
        "unique (port, instance) pairs",
        "INSERT",
        multicast(1, "port: '\\001'", "port: '\\001'"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.5.1",
        "one port with two instances",
        "INSERT",
        multicast(1, "port: '\\001'", "port: '\\001' instance: 1"),
        "OK",
    ),
    Rule(
        "9.5.1",
        "backup replicas are supported",
        "INSERT",
        multicast(1, "port: '\\001' backup_replicas { port: '\\002' }"),
        "OK",
    ),
    Rule("9.5.1", "a group that already exists", "INSERT", TWO, "ALREADY_EXISTS", (TWO,)),
    Rule("9.5.1", "MODIFY needs the group", "MODIFY", TWO, "NOT_FOUND"),
    Rule("9.5.1", "MODIFY replaces the replicas", "MODIFY", multicast(1), "OK", (TWO,)),
    Rule("9.5.1", "DELETE needs the group", "DELETE", TWO, "NOT_FOUND"),
    Rule("9.5.1", "DELETE by id alone", "DELETE", multicast(1), "OK", (TWO,)),
    Rule("9.5.2", "a clone session", "INSERT", MIRROR, "OK"),
    Rule(
        "9.5.2",
        "session_id greater than 0",
        "INSERT",
        session(0, "port: '\\001'"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.5.2",
        "a valid class of service",
        "INSERT",
        session(1, "port: '\\001'", more="class_of_service: 7"),
        "OK",
    ),
    Rule(
        "9.5.2",
        "no valid class of service",
        "INSERT",
        session(1, "port: '\\001'", more="class_of_service: 8"),
        "INVALID_ARGUMENT",
    ),
    Rule(
        "9.5.2",
        "a negative length",
        "INSERT",
        session(1, "port: '\\001'", more="packet_length_bytes: -1"),
        "INVALID_ARGUMENT",
    ),
    Rule("9.5.2", "a session that already exists", "INSERT", MIRROR, "ALREADY_EXISTS", (MIRROR,)),
    Rule("9.5.2", "DELETE needs the session", "DELETE", MIRROR, "NOT_FOUND"),
    Rule("9.6", "value set: MODIFY", "MODIFY", VALUES + f"members {{ {exact(7)} }} }}", "OK"),
    Rule(
        "9.6",
        "value set: no INSERT",
        "INSERT",
        VALUES + f"members {{ {exact(7)} }} }}",
        "INVALID_ARGUMENT",
    ),
    Rule("9.6", "value set: no DELETE", "DELETE", VALUES + "}", "INVALID_ARGUMENT"),
    Rule(
        "9.6",
        "value set: more than its size",
        "MODIFY",
        VALUES + "".join(f"members {{ {exact(i)} }}" for i in range(3)) + "}",
        "RESOURCE_EXHAUSTED",
    ),
    Rule(
        "9.6",
        "value set: duplicate members",
        "MODIFY",
        VALUES + f"members {{ {exact(7)} }} members {{ {exact(7)} }} }}",
        "ALREADY_EXISTS",
    ),
    Rule("9.8", "digest: INSERT enables it", "INSERT", DIGEST, "OK"),
    Rule("9.8", "digest: enabled already", "INSERT", DIGEST, "ALREADY_EXISTS", (DIGEST,)),
    Rule("9.8", "digest: MODIFY needs it enabled", "MODIFY", DIGEST, "NOT_FOUND"),
    Rule("9.8", "digest: DELETE needs it enabled", "DELETE", DIGEST, "NOT_FOUND"),
    Rule("9.8", "digest: of the P4Info", "INSERT", "digest_entry { digest_id: 9 }", "NOT_FOUND"),
    Rule(
        "9.9",
        "externs of other architectures",
        "INSERT",
        "extern_entry { extern_type_id: 1 }",
        "UNIMPLEMENTED",
    ),
    Rule("12", "an update has an entity", "INSERT", "", "INVALID_ARGUMENT"),
    Rule("12", "an update has a type", "UNSPECIFIED", KNOWN, "INVALID_ARGUMENT"),
]


@pytest.mark.parametrize(
    "rule", [*TABLES, *PROFILES, *ARRAYS, *OTHERS], ids=lambda rule: f"{rule.section} {rule.words}"
)
def test_update(rule: Rule) -> None:
    peer = Peer()
    for text in rule.before:
        peer.write(("INSERT", text))
    assert peer.code(rule.kind, rule.what) == rule.code
