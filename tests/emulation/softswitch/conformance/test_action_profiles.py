"""Section 9.2 of the P4Runtime specification 1.4: updates of members, groups and one-shots."""

from __future__ import annotations

import pytest

from tests.emulation.softswitch.conformance.peer import entry, exact, group, member, one_shot, plain
from tests.emulation.softswitch.conformance.rules import (
    ALREADY_EXISTS,
    EXHAUSTED,
    FAILED_PRECONDITION,
    INVALID,
    NOT_FOUND,
    OK,
    Rule,
    delete,
    insert,
    modify,
    outcome,
    section,
)

MEMBER, GROUP = member(1), group(1, "1 1")
BY_MEMBER = "action { action_profile_member_id: 1 }"
BY_GROUP = "action { action_profile_group_id: 1 }"

MEMBERS = section(
    "9.2.1",
    insert("a member may be inserted", MEMBER, OK),
    insert("the member id must be different", MEMBER, ALREADY_EXISTS, given=[MEMBER]),
    insert(
        "the action must be provided",
        "action_profile_member { action_profile_id: $choices member_id: 1 }",
        INVALID,
    ),
    insert("an action of the table only", member(1, plain("drop")), INVALID),
    insert(
        "more members than the maximum",
        member(4, profile="members"),
        EXHAUSTED,
        given=[member(i, profile="members") for i in (1, 2, 3)],
    ),
    insert("member_id is non-zero", member(0, plain("forward", 1)), INVALID),
    insert(
        "the profile is one of the P4Info",
        "action_profile_member { action_profile_id: 9 member_id: 1 }",
        NOT_FOUND,
    ),
    modify("MODIFY needs the member", MEMBER, NOT_FOUND),
    modify(
        "MODIFY needs the action",
        "action_profile_member { action_profile_id: $choices member_id: 1 }",
        INVALID,
        given=[MEMBER],
    ),
    delete("DELETE needs the member", MEMBER, NOT_FOUND),
    delete("DELETE ignores every other field", member(1, plain("drop")), OK, given=[MEMBER]),
    delete("DELETE: not part of a group", MEMBER, FAILED_PRECONDITION, given=[MEMBER, GROUP]),
    delete(
        "DELETE: not referenced by a table entry",
        MEMBER,
        FAILED_PRECONDITION,
        given=[MEMBER, entry("selected_table", exact(5), BY_MEMBER)],
    ),
)

GROUPS = section(
    "9.2.2",
    insert("a group of existing members", GROUP, OK, given=[MEMBER]),
    insert("an empty group", group(1), OK),
    insert("the group id must be different", GROUP, ALREADY_EXISTS, given=[MEMBER, GROUP]),
    insert("all members must exist", GROUP, NOT_FOUND),
    insert("no member twice", group(1, "1 1", "1 2"), INVALID, given=[MEMBER]),
    insert("0 is not a valid weight", group(1, "1 0"), INVALID, given=[MEMBER]),
    insert("a negative weight", group(1, "1 -1"), INVALID, given=[MEMBER]),
    insert("group_id is non-zero", group(0, "1 1"), INVALID, given=[MEMBER]),
    insert(
        "watch_port of an existing port", group(1, "1 1 watch_port: '\\003'"), OK, given=[MEMBER]
    ),
    insert(
        "watch_port of no existing port",
        group(1, "1 1 watch_port: '\\143'"),
        INVALID,
        given=[MEMBER],
    ),
    insert("a group of a profile without selector", group(1, profile="members"), INVALID),
    modify("MODIFY needs the group", GROUP, NOT_FOUND, given=[MEMBER]),
    modify(
        "MODIFY: the members must exist", group(1, "1 1", "2 1"), NOT_FOUND, given=[MEMBER, GROUP]
    ),
    delete("DELETE needs the group", GROUP, NOT_FOUND),
    delete(
        "DELETE: not referenced by a table entry",
        GROUP,
        FAILED_PRECONDITION,
        given=[MEMBER, GROUP, entry("selected_table", exact(5), BY_GROUP)],
    ),
    modify(
        "max_size must not be changed",
        group(1, "1 1", more="max_size: 3"),
        INVALID,
        given=[MEMBER, group(1, "1 1", more="max_size: 2")],
    ),
    insert(
        "weights within max_size", group(1, "1 3", more="max_size: 2"), EXHAUSTED, given=[MEMBER]
    ),
)

ONE_SHOTS = section(
    "9.2.3",
    insert("a one-shot", entry("selected_table", exact(5), one_shot("1 1", "2 3")), OK),
    insert(
        "one-shot: the same action twice",
        entry("selected_table", exact(5), one_shot("1 1", "1 1")),
        OK,
    ),
    insert(
        "one-shot: 0 is not a valid weight",
        entry("selected_table", exact(5), one_shot("1 0")),
        INVALID,
    ),
    insert(
        "one-shot: watch_port must exist",
        entry("selected_table", exact(5), one_shot("1 1 watch_port: '\\143'")),
        INVALID,
    ),
    insert(
        "one-shot: only with a selector",
        entry("indirect_table", exact(5), one_shot("1 1")),
        INVALID,
    ),
    insert(
        "one-shot: not beside members",
        entry("selected_table", exact(5), one_shot("1 1")),
        INVALID,
        given=[MEMBER],
    ),
    insert(
        "members not beside one-shots",
        MEMBER,
        INVALID,
        given=[entry("selected_table", exact(5), one_shot("1 1"))],
    ),
    insert(
        "one-shot: more than the selector holds",
        entry("selected_table", exact(5), one_shot(*(f"{i} 1" for i in range(9)))),
        EXHAUSTED,
    ),
)


@pytest.mark.parametrize("rule", [*MEMBERS, *GROUPS, *ONE_SHOTS], ids=Rule.name)
def test_an_update_of_an_action_profile(rule: Rule) -> None:
    """An update of a profile ends with the code of its rule."""
    assert outcome(rule) == rule.code
