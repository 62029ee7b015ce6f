"""Lines that the commands print: entries, actions, members, ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ofan_p4.softswitch.codegen.program import TableSpec
from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.messages import EntryType, MatchType

RULE = "=========="
STARS = "**********"


def spaced(data: bytes) -> str:
    """Return bytes as 0a:00:00:01."""
    return data.hex(":")


def match_text(param: m.MatchParam) -> str:
    """Return one field of a key that is about to be sent."""
    return f"{MatchType(param.type).name}-{_match(param, spaced_by=':')}"


def _match(param: m.MatchParam, spaced_by: str = "") -> str:
    def text(data: bytes) -> str:
        return data.hex(spaced_by) if spaced_by else data.hex()

    if param.lpm is not None:
        return f"{text(param.lpm.key)}/{param.lpm.prefix_length}"
    if param.ternary is not None:
        return f"{text(param.ternary.key)} &&& {text(param.ternary.mask)}"
    if param.range is not None:
        return f"{text(param.range.start)} -> {text(param.range.end_)}"
    if param.valid is not None:
        return "01" if param.valid.key else "00"

    return text(param.exact.key) if param.exact is not None else ""


def action_lines(action: m.ActionEntry) -> Iterator[str]:
    """Yield the line of an entry's action, member or group."""
    match action.action_type:
        case EntryType.ACTION_DATA:
            values = ", ".join(value.hex() for value in action.action_data or ())
            yield f"Action entry: {action.action_name} - {values}"
        case EntryType.MBR_HANDLE:
            yield f"Index: member({action.mbr_handle})"
        case EntryType.GRP_HANDLE:
            yield f"Index: group({action.grp_handle})"
        case _:
            yield "EMPTY"


def entry_lines(table: TableSpec, entry: m.TableEntry) -> Iterator[str]:
    """Yield one entry of a table."""
    yield f"Dumping entry {entry.entry_handle:#x}"
    yield "Match key:"
    width = max([20, *(len(field.name) for field in table.key)])
    for field, param in zip(table.key, entry.match_key, strict=False):
        kind = MatchType(param.type).name
        yield f"* {field.name:{width}}: {kind:10}{_match(param)}"

    if entry.options.priority is not None and entry.options.priority >= 0:
        yield f"Priority: {entry.options.priority}"

    yield from action_lines(entry.action_entry)
    if entry.life is not None:
        life = entry.life
        yield f"Life: {life.time_since_hit_ms}ms since hit, timeout is {life.timeout_ms}ms"


def member_lines(member: m.ProfileMember) -> Iterator[str]:
    """Yield one member of an action profile."""
    values = ", ".join(value.hex() for value in member.action_data)
    yield f"Dumping member {member.mbr_handle}"
    yield f"Action entry: {member.action_name} - {values}"


def group_lines(group: m.ProfileGroup) -> Iterator[str]:
    """Yield one group of an action profile."""
    yield f"Dumping group {group.grp_handle}"
    yield f"Members: [{', '.join(map(str, group.mbr_handles))}]"


def port_lines(ports: Sequence[m.PortInfo]) -> Iterator[str]:
    """Yield the ports of the switch."""
    yield f"{'port #':^10}{'iface name':^20}{'status':^10}extra info"
    yield "=" * 50
    for port in ports:
        extra = "; ".join(f"{key}={text}" for key, text in port.extra.items())
        status = "UP" if port.is_up else "DOWN"
        yield f"{port.port_num:^10}{port.iface_name:^20}{status:^10}{extra}"
