"""The runtime API's calls for action profiles and selectors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from ofan_p4.softswitch.codegen.program import USE_GROUP, USE_MEMBER
from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.keys import decode_data, encode_data
from ofan_p4.softswitch.daemon.thrift.messages import Refusal, TableError
from ofan_p4.softswitch.daemon.thrift.state import ProfileState, Runtime
from ofan_p4.softswitch.daemon.thrift.table_calls import refused
from ofan_p4.softswitch.daemon.thrift.wire import I32
from ofan_p4.softswitch.state.profiles import Choice, Membership


class ProfileCalls(m.Part):
    """Action profiles and selectors: handles are the numbers of members and groups."""

    codes = m.TableError

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def bm_mt_act_prof_add_member(
        self, act_prof_name: str, action_name: str, action_data: m.Data
    ) -> I32:
        state = self._runtime.loaded.profile(act_prof_name)
        handle = _lowest_free(state.profile.members)
        with refused():
            state.profile.add_member(handle, self._choice(state, action_name, action_data))

        return handle

    def bm_mt_act_prof_delete_member(self, act_prof_name: str, mbr_handle: I32) -> None:
        state = self._member(act_prof_name, mbr_handle)
        groups = state.profile.groups.values()
        is_grouped = any(item.member == mbr_handle for group in groups for item in group.members)
        if is_grouped or self._is_used(state, (USE_MEMBER, (mbr_handle,))):
            raise Refusal(TableError.MBR_STILL_USED)

        state.profile.delete_member(mbr_handle)

    def bm_mt_act_prof_modify_member(
        self, act_prof_name: str, mbr_handle: I32, action_name: str, action_data: m.Data
    ) -> None:
        state = self._member(act_prof_name, mbr_handle)
        choice = self._choice(state, action_name, action_data)
        state.profile.modify_member(mbr_handle, choice)

    def bm_mt_act_prof_create_group(self, act_prof_name: str) -> I32:
        state = self._runtime.loaded.profile(act_prof_name)
        if not state.has_selector:
            raise Refusal(TableError.NO_ACTION_PROFILE_SELECTION)

        handle = _lowest_free(state.profile.groups)
        with refused():
            state.profile.add_group(handle, (), 0)

        return handle

    def bm_mt_act_prof_delete_group(self, act_prof_name: str, grp_handle: I32) -> None:
        state = self._group(act_prof_name, grp_handle)
        if self._is_used(state, (USE_GROUP, (grp_handle,))):
            raise Refusal(TableError.GRP_STILL_USED)

        state.profile.delete_group(grp_handle)

    def bm_mt_act_prof_add_member_to_group(
        self, act_prof_name: str, mbr_handle: I32, grp_handle: I32
    ) -> None:
        state = self._group(act_prof_name, grp_handle)
        self._member(act_prof_name, mbr_handle)
        members = state.profile.groups[grp_handle].members
        if any(item.member == mbr_handle for item in members):
            raise Refusal(TableError.MBR_ALREADY_IN_GRP)

        self._regroup(state, grp_handle, (*members, Membership(mbr_handle, 1)))

    def bm_mt_act_prof_remove_member_from_group(
        self, act_prof_name: str, mbr_handle: I32, grp_handle: I32
    ) -> None:
        state = self._group(act_prof_name, grp_handle)
        self._member(act_prof_name, mbr_handle)
        members = state.profile.groups[grp_handle].members
        rest = tuple(item for item in members if item.member != mbr_handle)
        if len(rest) == len(members):
            raise Refusal(TableError.MBR_NOT_IN_GRP)

        self._regroup(state, grp_handle, rest)

    def bm_mt_act_prof_get_members(self, act_prof_name: str) -> list[m.ProfileMember]:
        state = self._runtime.loaded.profile(act_prof_name)
        return [
            self.bm_mt_act_prof_get_member(act_prof_name, handle)
            for handle in sorted(state.profile.members)
            if handle >= 0
        ]

    def bm_mt_act_prof_get_member(self, act_prof_name: str, mbr_handle: I32) -> m.ProfileMember:
        state = self._member(act_prof_name, mbr_handle)
        number, values = state.profile.members[mbr_handle]
        action = self._runtime.loaded.actions[number]
        return m.ProfileMember(mbr_handle, action.name, encode_data(action, values))

    def bm_mt_act_prof_get_groups(self, act_prof_name: str) -> list[m.ProfileGroup]:
        state = self._runtime.loaded.profile(act_prof_name)
        return [
            self.bm_mt_act_prof_get_group(act_prof_name, handle)
            for handle in sorted(state.profile.groups)
            if handle >= 0
        ]

    def bm_mt_act_prof_get_group(self, act_prof_name: str, grp_handle: I32) -> m.ProfileGroup:
        state = self._group(act_prof_name, grp_handle)
        members = state.profile.groups[grp_handle].members
        return m.ProfileGroup(grp_handle, [item.member for item in members])

    def _choice(self, state: ProfileState, name: str, data: list[bytes]) -> Choice:
        action = state.action(name)
        return action.id, decode_data(action, data)

    def _member(self, name: str, handle: int) -> ProfileState:
        state = self._runtime.loaded.profile(name)
        # Handles below 0 belong to P4Runtime's one-shots.
        if handle < 0 or handle not in state.profile.members:
            raise Refusal(TableError.INVALID_MBR_HANDLE)

        return state

    def _group(self, name: str, handle: int) -> ProfileState:
        state = self._runtime.loaded.profile(name)
        if not state.has_selector:
            raise Refusal(TableError.NO_ACTION_PROFILE_SELECTION)
        if handle < 0 or handle not in state.profile.groups:
            raise Refusal(TableError.INVALID_GRP_HANDLE)

        return state

    def _regroup(self, state: ProfileState, handle: int, members: tuple[Membership, ...]) -> None:
        if not members and self._is_used(state, (USE_GROUP, (handle,))):
            raise Refusal(TableError.EMPTY_GRP)

        state.profile.modify_group(handle, members, state.profile.groups[handle].max_size)

    def _is_used(self, state: ProfileState, choice: Choice) -> bool:
        return any(entry[:2] == choice for table in state.tables for entry in table.table)


def _lowest_free(taken: Iterable[int]) -> int:
    taken_handles = set(taken)
    return next(number for number in count() if number not in taken_handles)
