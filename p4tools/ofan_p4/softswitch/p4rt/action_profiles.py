"""Members and groups of action profiles."""

from __future__ import annotations

from p4.v1.p4runtime_pb2 import ActionProfileGroup as GroupMessage
from p4.v1.p4runtime_pb2 import ActionProfileMember as Member
from p4.v1.p4runtime_pb2 import Update

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.codegen.program import USE_GROUP, USE_MEMBER
from ofan_p4.softswitch.p4rt.actions import (
    MAX_WEIGHT,
    check_size,
    encode_action,
    member_action,
    watch_port,
)
from ofan_p4.softswitch.p4rt.bytestrings import encode
from ofan_p4.softswitch.p4rt.contract import Add, Contract
from ofan_p4.softswitch.p4rt.specs import ProfileSpec, TableInfo
from ofan_p4.softswitch.state.profiles import Group, Membership


class ActionProfiles:
    """Writes and reads the action profiles of one pipeline."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract

    def write_member(self, kind: int, message: Member) -> None:
        """Apply one update of a member."""
        profile = self._profile(message.action_profile_id, message.member_id, "member")
        if kind == Update.DELETE:
            # 9.2.1: a member that an entry or a group uses cannot be deleted; the profile knows the
            # groups.
            self._check_unused(profile, USE_MEMBER, message.member_id)
            profile.runtime.delete_member(message.member_id)
            return

        if not message.HasField("action"):
            raise EntryError(Code.INVALID_ARGUMENT, "a member needs an action")

        choice = member_action(profile, self._tables(profile), message.action)
        if kind == Update.INSERT:
            profile.runtime.add_member(message.member_id, choice)
        else:
            profile.runtime.modify_member(message.member_id, choice)

    def write_group(self, kind: int, message: GroupMessage) -> None:
        """Apply one update of a group."""
        profile = self._profile(message.action_profile_id, message.group_id, "group")
        if not profile.has_selector:
            raise EntryError(
                Code.INVALID_ARGUMENT, f"{profile.name!r} is not a selector: it has no groups"
            )

        if kind == Update.DELETE:
            self._check_unused(profile, USE_GROUP, message.group_id)
            profile.runtime.delete_group(message.group_id)
            return

        if message.max_size < 0 or (
            profile.max_group_size and message.max_size > profile.max_group_size
        ):
            raise EntryError(
                Code.INVALID_ARGUMENT,
                f"max_size {message.max_size} is not within {profile.max_group_size}",
            )

        members = [_membership(profile, member) for member in message.members]
        # 9.2.2: the group's own limit, else that of the P4Info.
        limit = message.max_size or profile.max_group_size
        check_size(profile, [member.weight for member in members], limit, Code.RESOURCE_EXHAUSTED)

        if kind == Update.INSERT:
            profile.runtime.add_group(message.group_id, members, message.max_size)
        else:
            profile.runtime.modify_group(message.group_id, members, message.max_size)

    def read_member(self, request: Member, add: Add) -> None:
        """Add the selected members; those of one-shots show in their table entries."""
        for profile in self._selected(request.action_profile_id):
            for member, choice in profile.runtime.members.items():
                # Members of one-shots have negative numbers of our own; P4Runtime never shows them.
                if member < 0 or request.member_id not in (0, member):
                    continue

                entity = add()
                entity.action_profile_member.action_profile_id = profile.id
                entity.action_profile_member.member_id = member
                # The tables of a profile share its actions, so that any that knows this one can
                # spell it.
                table = next(
                    table
                    for table in self._tables(profile)
                    if table.action_of(choice[0]) is not None
                )

                encode_action(table, choice, entity.action_profile_member.action)

    def read_group(self, request: GroupMessage, add: Add) -> None:
        """Add the selected groups."""
        for profile in self._selected(request.action_profile_id):
            for number, group in profile.runtime.groups.items():
                if number >= 0 and request.group_id in (0, number):
                    add().action_profile_group.CopyFrom(_encode_group(profile, number, group))

    def _profile(self, profile_id: int, number: int, noun: str) -> ProfileSpec:
        profile = self._contract.profile(profile_id)
        if number == 0:
            raise EntryError(Code.INVALID_ARGUMENT, f"a {noun} id of 0")

        # 9.2.3: a profile is programmed with members and groups or with one-shots, not both.
        if profile.runtime.has_hidden():
            raise EntryError(
                Code.INVALID_ARGUMENT,
                f"{profile.name!r} is programmed with one-shots; {noun}s cannot be mixed with them",
            )

        return profile

    def _selected(self, profile_id: int) -> list[ProfileSpec]:
        return (
            [self._contract.profile(profile_id)]
            if profile_id
            else list(self._contract.profiles.values())
        )

    def _tables(self, profile: ProfileSpec) -> list[TableInfo]:
        return [
            self._contract.tables[table]
            for table in profile.table_ids
            if table in self._contract.tables
        ]

    def _check_unused(self, profile: ProfileSpec, kind: int, number: int) -> None:
        for table in self._tables(profile):
            # Entries name members by number: a dangling number would quietly do nothing.
            if any(entry[0] == kind and entry[1][0] == number for entry in table.runtime):
                raise EntryError(
                    Code.FAILED_PRECONDITION,
                    f"{number} is used by an entry of table {table.name!r}",
                )


def _membership(profile: ProfileSpec, message: GroupMessage.Member) -> Membership:
    if not 0 < message.weight <= MAX_WEIGHT:
        raise EntryError(
            Code.INVALID_ARGUMENT, f"member {message.member_id} has weight {message.weight}"
        )

    return Membership(message.member_id, message.weight, watch_port(profile, message))


def _encode_group(profile: ProfileSpec, number: int, group: Group) -> GroupMessage:
    message = GroupMessage(action_profile_id=profile.id, group_id=number, max_size=group.max_size)
    for member in group.members:
        item = message.members.add(member_id=member.member, weight=member.weight)
        if member.watch_port is not None:
            item.watch_port = encode(member.watch_port)

    return message
