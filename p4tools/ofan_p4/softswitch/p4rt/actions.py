"""Actions between P4Runtime messages and the forms that tables and profiles store."""

from __future__ import annotations

from collections.abc import Sequence

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Action, TableAction, TableEntry

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.codegen.program import USE_GROUP, USE_MEMBER
from ofan_p4.softswitch.p4rt.bytestrings import decode, encode
from ofan_p4.softswitch.p4rt.specs import ActionSpec, ProfileSpec, TableInfo
from ofan_p4.softswitch.state.profiles import Choice, Group

MAX_WEIGHT = 1 << 16


def decode_action(table: TableInfo, action: Action) -> Choice:
    """Return (number, arguments) of an action that the table offers."""
    spec = table.actions.get(action.action_id)
    if spec is None:
        raise _invalid(f"table {table.name!r} has no action {action.action_id}")

    return table.number(spec.id), decode_arguments(spec, action)


def decode_arguments(spec: ActionSpec, action: Action) -> tuple[int, ...]:
    """Return the arguments of an action in the order of its declaration."""
    values = {param.param_id: param.value for param in action.params}
    ids = {parameter.id for parameter in spec.parameters}
    # A parameter given twice shows as fewer keys than parameters.
    if len(values) != len(action.params) or values.keys() != ids:
        raise _invalid(
            f"action {spec.name!r} takes the parameters {sorted(ids)}, found {sorted(values)}"
        )

    return tuple(p.decode(values[p.id], f"{spec.name}: {p.name}") for p in spec.parameters)


def encode_action(table: TableInfo, choice: Choice, action: Action) -> None:
    """Fill in the message form of (number, arguments).

    An action that P4Info does not know leaves it empty.
    """
    # A default entry may run an action of the device config alone.
    spec = table.action_of(choice[0])
    if spec is None:
        return

    action.action_id = spec.id
    for parameter, value in zip(spec.parameters, choice[1], strict=True):
        action.params.add(param_id=parameter.id, value=parameter.encode(value))


def decode_table_action(
    table: TableInfo, message: TableAction, replaced: int | None = None
) -> Choice:
    """Return the form that an entry of the table stores for the requested action.

    A one-shot creates its group.
    """
    kind = message.WhichOneof("type")
    if kind == "action":
        if table.profile is not None:
            raise _invalid(
                f"table {table.name!r} takes members or groups of {table.profile.name!r},"
                " not an action"
            )

        _check_scope(table, message.action.action_id)
        return decode_action(table, message.action)

    if kind is None:
        raise _invalid("an entry needs an action")
    if table.profile is None:
        raise _invalid(f"table {table.name!r} has no action profile")
    if kind == "action_profile_member_id":
        return _member(table.profile, message.action_profile_member_id)
    if not table.profile.has_selector:
        raise _invalid(f"{table.profile.name!r} is not a selector: it has no groups")
    if kind == "action_profile_group_id":
        return _group(table.profile, message.action_profile_group_id)

    # Several choices in one entry: a group that lives and dies with it.
    return _one_shot(table, table.profile, message.action_profile_action_set, replaced)


def encode_table_action(table: TableInfo, choice: Choice, entry: TableEntry) -> None:
    """Fill in the action of a table entry; without one it stays unset."""
    kind, arguments = choice
    if kind == USE_MEMBER:
        entry.action.action_profile_member_id = arguments[0]
    # Groups of one-shots are negative, and shown as the one-shot they were made from.
    elif kind == USE_GROUP and arguments[0] >= 0:
        entry.action.action_profile_group_id = arguments[0]
    elif kind == USE_GROUP and table.profile is not None:
        _encode_one_shot(
            table, table.profile.runtime.groups[arguments[0]], table.profile, entry.action
        )
    elif table.action_of(kind) is not None:
        encode_action(table, choice, entry.action.action)


def one_shot_of(choice: Choice) -> int | None:
    """Return the hidden group that a one-shot entry owns."""
    return choice[1][0] if choice[0] == USE_GROUP and choice[1][0] < 0 else None


def watch_port(
    profile: ProfileSpec,
    message: p4runtime_pb2.ActionProfileAction | p4runtime_pb2.ActionProfileGroup.Member,
) -> int | None:
    """Return the port that a member depends on; `watch` is the deprecated form."""
    port = None
    match message.WhichOneof("watch_kind"):
        case "watch_port":
            port = decode(message.watch_port, 32, "watch_port") if message.watch_port else None
        case "watch":
            port = message.watch or None

    if port is not None and not profile.runtime.has_port(port):
        raise _invalid(f"watch_port {port} does not exist")

    return port


def check_size(profile: ProfileSpec, weights: Sequence[int], limit: int, code: Code) -> None:
    """Raise EntryError for a group that is larger than it may be.

    P4Info defines whether weights or members count.
    """
    if profile.counts_members:
        heaviest = max(weights, default=0)
        if profile.max_member_weight and heaviest > profile.max_member_weight:
            raise _invalid(
                f"a weight of {heaviest} is above max_member_weight {profile.max_member_weight}"
            )

    # 9.2.2, size semantics: sum_of_members counts members, sum_of_weights their weights.
    size = len(weights) if profile.counts_members else sum(weights)
    if limit and size > limit:
        raise EntryError(code, f"a group of size {size} is larger than {limit}")


def member_action(profile: ProfileSpec, tables: Sequence[TableInfo], action: Action) -> Choice:
    """Return (number, arguments) of a member's action, of any table of the profile."""
    for table in tables:
        if action.action_id in table.actions:
            _check_scope(table, action.action_id)
            return decode_action(table, action)

    raise _invalid(f"no table of {profile.name!r} has an action {action.action_id}")


def _check_scope(table: TableInfo, action: int) -> None:
    # P4Info, scope of an action: @defaultonly ones are not for entries.
    if action in table.only_default:
        raise EntryError(
            Code.PERMISSION_DENIED,
            f"action {action} can only be the default action of {table.name!r}",
        )


def _member(profile: ProfileSpec, member: int) -> Choice:
    if member not in profile.runtime.members:
        raise EntryError(Code.NOT_FOUND, f"{profile.name!r} has no member {member}")

    return USE_MEMBER, (member,)


def _group(profile: ProfileSpec, group: int) -> Choice:
    if group not in profile.runtime.groups:
        raise EntryError(Code.NOT_FOUND, f"{profile.name!r} has no group {group}")

    return USE_GROUP, (group,)


def _one_shot(
    table: TableInfo,
    profile: ProfileSpec,
    actions: p4runtime_pb2.ActionProfileActionSet,
    replaced: int | None,
) -> Choice:
    if any(member >= 0 for member in profile.runtime.members):
        raise _invalid(
            f"{profile.name!r} is programmed with members; one-shots cannot be mixed with them"
        )

    if actions.HasField("group_action"):
        raise EntryError(Code.UNIMPLEMENTED, "group_action is not supported")

    if actions.action_selection_mode or actions.size_semantics:
        raise EntryError(
            Code.UNIMPLEMENTED, "only the selector's own mode and size semantics are supported"
        )

    # All is decoded before the profile changes: a bad one-shot leaves nothing behind.
    choices = []
    for item in actions.action_profile_actions:
        if not 0 < item.weight <= MAX_WEIGHT:
            raise _invalid(f"a weight of {item.weight}")

        _check_scope(table, item.action.action_id)
        choices.append((decode_action(table, item.action), item.weight, watch_port(profile, item)))

    check_size(
        profile, [weight for _, weight, _ in choices], profile.max_group_size, Code.INVALID_ARGUMENT
    )
    return USE_GROUP, (profile.runtime.add_hidden(choices, replaced),)


def _encode_one_shot(
    table: TableInfo, group: Group, profile: ProfileSpec, message: TableAction
) -> None:
    for member in group.members:
        item = message.action_profile_action_set.action_profile_actions.add(weight=member.weight)
        encode_action(table, profile.runtime.members[member.member], item.action)
        if member.watch_port is not None:
            item.watch_port = encode(member.watch_port)


def _invalid(message: str) -> EntryError:
    return EntryError(Code.INVALID_ARGUMENT, message)
