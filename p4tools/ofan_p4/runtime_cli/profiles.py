"""Commands for action profiles."""

from __future__ import annotations

from ofan_p4.runtime_cli import texts, values
from ofan_p4.runtime_cli.session import Lines, Session, command
from ofan_p4.softswitch.codegen.program import Profile


@command("act_prof_create_member <profile> <action> ...")
def act_prof_create_member(session: Session, tokens: list[str]) -> Lines:
    """Add a member."""
    profile = session.names.profile(tokens[0])
    action = session.names.member_action(profile, tokens[1])
    handle = session.standard(
        "bm_mt_act_prof_add_member",
        act_prof_name=profile.name,
        action_name=action.name,
        action_data=values.data(action, tokens[2:]),
    )
    yield f"Member has been created with handle {handle}"


@command("act_prof_modify_member <profile> <action> <member> ...")
def act_prof_modify_member(session: Session, tokens: list[str]) -> None:
    """Replace the action of a member."""
    profile = session.names.profile(tokens[0])
    action = session.names.member_action(profile, tokens[1])
    arguments = tokens[4:] if tokens[3:4] == ["=>"] else tokens[3:]
    session.standard(
        "bm_mt_act_prof_modify_member",
        act_prof_name=profile.name,
        mbr_handle=values.i32(tokens[2], "a member"),
        action_name=action.name,
        action_data=values.data(action, arguments),
    )


@command("act_prof_delete_member <profile> <member>")
def act_prof_delete_member(session: Session, tokens: list[str]) -> None:
    """Remove a member."""
    _call(session, "bm_mt_act_prof_delete_member", tokens, "mbr_handle")


@command("act_prof_create_group <profile>")
def act_prof_create_group(session: Session, tokens: list[str]) -> Lines:
    """Add a group."""
    profile = session.names.profile(tokens[0])
    handle = session.standard("bm_mt_act_prof_create_group", act_prof_name=profile.name)
    yield f"Group has been created with handle {handle}"


@command("act_prof_delete_group <profile> <group>")
def act_prof_delete_group(session: Session, tokens: list[str]) -> None:
    """Remove a group."""
    _call(session, "bm_mt_act_prof_delete_group", tokens, "grp_handle")


@command("act_prof_add_member_to_group <profile> <member> <group>")
def act_prof_add_member_to_group(session: Session, tokens: list[str]) -> None:
    """Add a member to a group."""
    method = "bm_mt_act_prof_add_member_to_group"
    _call(session, method, tokens, "mbr_handle", "grp_handle")


@command("act_prof_remove_member_from_group <profile> <member> <group>")
def act_prof_remove_member_from_group(session: Session, tokens: list[str]) -> None:
    """Take a member out of a group."""
    method = "bm_mt_act_prof_remove_member_from_group"
    _call(session, method, tokens, "mbr_handle", "grp_handle")


def _call(session: Session, method: str, tokens: list[str], *handles: str) -> None:
    profile = session.names.profile(tokens[0])
    arguments = {
        name: values.i32(word, "a handle") for name, word in zip(handles, tokens[1:], strict=True)
    }
    session.standard(method, act_prof_name=profile.name, **arguments)


@command("act_prof_dump <profile>")
def act_prof_dump(session: Session, tokens: list[str]) -> Lines:
    """Print all members and groups."""
    yield from profile_lines(session, session.names.profile(tokens[0]))


@command("act_prof_dump_member <profile> <member>")
def act_prof_dump_member(session: Session, tokens: list[str]) -> Lines:
    """Print a member."""
    profile = session.names.profile(tokens[0])
    handle = values.i32(tokens[1], "a member")
    member = session.standard(
        "bm_mt_act_prof_get_member", act_prof_name=profile.name, mbr_handle=handle
    )
    yield from texts.member_lines(member)


@command("act_prof_dump_group <profile> <group>")
def act_prof_dump_group(session: Session, tokens: list[str]) -> Lines:
    """Print a group."""
    profile = session.names.profile(tokens[0])
    handle = values.i32(tokens[1], "a group")
    group = session.standard(
        "bm_mt_act_prof_get_group", act_prof_name=profile.name, grp_handle=handle
    )
    yield from texts.group_lines(group)


def profile_lines(session: Session, profile: Profile) -> Lines:
    """Yield the members and groups of a profile."""
    yield texts.RULE
    yield "MEMBERS"
    for member in session.standard("bm_mt_act_prof_get_members", act_prof_name=profile.name):
        yield texts.STARS
        yield from texts.member_lines(member)

    if profile.algorithm is None:
        return

    yield texts.RULE
    yield "GROUPS"
    for group in session.standard("bm_mt_act_prof_get_groups", act_prof_name=profile.name):
        yield texts.STARS
        yield from texts.group_lines(group)
