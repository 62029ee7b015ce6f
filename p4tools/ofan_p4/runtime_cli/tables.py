"""Commands for tables."""

from __future__ import annotations

from ofan_p4.runtime_cli import texts, values
from ofan_p4.runtime_cli.names import InputError
from ofan_p4.runtime_cli.session import Lines, Session, command
from ofan_p4.softswitch.codegen.program import Action, TableSpec, lookup_kind
from ofan_p4.softswitch.daemon.thrift import messages as m

KINDS = {"masked": "ternary", "rows": "range"}


def kind_of(table: TableSpec) -> str:
    """Return BMv2's name for the way a table is searched."""
    kind = lookup_kind(table)
    return KINDS.get(kind, kind)


@command("show_tables")
def show_tables(session: Session, _tokens: list[str]) -> Lines:
    """List the tables."""
    for name in sorted(session.names.tables):
        yield _table_line(session.names.tables[name])


def _table_line(table: TableSpec) -> str:
    key = ",\t".join(f"{field.name}({field.kind}, {field.bits})" for field in table.key)
    return f"{table.name:30} [implementation={table.profile}, mk={key}]"


def _action_line(action: Action) -> str:
    pairs = zip(action.parameter_names, action.parameter_bits, strict=True)
    text = ",\t".join(f"{name}({bits})" for name, bits in pairs)
    return f"{action.name:30} [{text}]"


@command("show_actions")
def show_actions(session: Session, _tokens: list[str]) -> Lines:
    """List the actions."""
    lines = {_action_line(action) for action in session.names.actions.values()}
    yield from sorted(lines)


@command("table_show_actions <table>")
def table_show_actions(session: Session, tokens: list[str]) -> Lines:
    """List the actions of a table."""
    table = session.names.table(tokens[0])
    yield from sorted({_action_line(session.names.actions[number]) for number in table.actions})


@command("table_info <table>")
def table_info(session: Session, tokens: list[str]) -> Lines:
    """Describe a table."""
    yield _table_line(session.names.table(tokens[0]))
    yield "*" * 80
    yield from table_show_actions(session, tokens)


@command("table_set_default <table> <action> ...")
def table_set_default(session: Session, tokens: list[str]) -> Lines:
    """Set the default action of a table."""
    table = session.names.table(tokens[0])
    action = session.names.action(table, tokens[1])
    data = values.data(action, _behind_arrow(tokens[2:]))
    session.standard(
        "bm_mt_set_default_action",
        table_name=table.name,
        action_name=action.name,
        action_data=data,
    )
    yield f"Setting default action of {tokens[0]}"
    yield f"{'action:':20} {tokens[1]}"
    yield f"{'runtime data:':20} " + "\t".join(map(texts.spaced, data))


@command("table_reset_default <table>")
def table_reset_default(session: Session, tokens: list[str]) -> None:
    """Go back to the default action of the program."""
    table = session.names.table(tokens[0])
    session.standard("bm_mt_reset_default_entry", table_name=table.name)


@command("table_num_entries <table>")
def table_num_entries(session: Session, tokens: list[str]) -> Lines:
    """Count the entries of a table."""
    table = session.names.table(tokens[0])
    yield str(session.standard("bm_mt_get_num_entries", table_name=table.name))


@command("table_clear <table>")
def table_clear(session: Session, tokens: list[str]) -> None:
    """Remove all entries of a table except the default entry."""
    table = session.names.table(tokens[0])
    session.standard("bm_mt_clear_entries", table_name=table.name, reset_default_entry=False)


@command("table_add <table> <action> <key> ... => [parameter] ... [priority]")
def table_add(session: Session, tokens: list[str]) -> Lines:
    """Add an entry."""
    table = session.names.table(tokens[0])
    action = session.names.action(table, tokens[1])
    rest, priority = values.with_priority(table, tokens[2:])
    key, arguments = _split(rest)
    match_key = values.match_key(table, key)
    data = values.data(action, arguments)

    yield f"Adding entry to {kind_of(table)} match table {tokens[0]}"
    yield f"{'match key:':20} " + "\t".join(map(texts.match_text, match_key))
    yield f"{'action:':20} {tokens[1]}"
    yield f"{'runtime data:':20} " + "\t".join(map(texts.spaced, data))
    handle = session.standard(
        "bm_mt_add_entry",
        table_name=table.name,
        match_key=match_key,
        action_name=action.name,
        action_data=data,
        options=m.AddEntryOptions(priority),
    )
    yield f"Entry has been added with handle {handle}"


@command("table_set_timeout <table> <entry> <milliseconds>")
def table_set_timeout(session: Session, tokens: list[str]) -> Lines:
    """Set the idle timeout of an entry."""
    table = session.names.table(tokens[0])
    entry, timeout = values.i32(tokens[1], "an entry"), values.i32(tokens[2], "a timeout")
    method = "bm_mt_indirect_set_entry_ttl" if table.profile else "bm_mt_set_entry_ttl"
    session.standard(method, table_name=table.name, entry_handle=entry, timeout_ms=timeout)
    yield f"Setting a {timeout} ms timeout for entry {entry}"


@command("table_modify <table> <action> <entry> ...")
def table_modify(session: Session, tokens: list[str]) -> Lines:
    """Replace the action of an entry."""
    table = session.names.table(tokens[0])
    action = session.names.action(table, tokens[1])
    entry = values.i32(tokens[2], "an entry")
    session.standard(
        "bm_mt_modify_entry",
        table_name=table.name,
        entry_handle=entry,
        action_name=action.name,
        action_data=values.data(action, _behind_arrow(tokens[3:])),
    )
    yield f"Modifying entry {entry} for {kind_of(table)} match table {tokens[0]}"


@command("table_delete <table> <entry>")
def table_delete(session: Session, tokens: list[str]) -> Lines:
    """Remove an entry."""
    yield from _delete(session, tokens, "bm_mt_delete_entry")


@command("table_indirect_delete <table> <entry>")
def table_indirect_delete(session: Session, tokens: list[str]) -> Lines:
    """Remove an entry that names a member or group."""
    yield from _delete(session, tokens, "bm_mt_indirect_delete_entry")


def _delete(session: Session, tokens: list[str], method: str) -> Lines:
    table = session.names.table(tokens[0])
    entry = values.i32(tokens[1], "an entry")
    session.standard(method, table_name=table.name, entry_handle=entry)
    yield f"Deleting entry {entry} from {tokens[0]}"


@command("table_indirect_add <table> <key> ... => <member> [priority]")
def table_indirect_add(session: Session, tokens: list[str]) -> Lines:
    """Add an entry that names a member."""
    yield from _add_indirect(session, tokens, "bm_mt_indirect_add_entry", "mbr_handle")


@command("table_indirect_add_with_group <table> <key> ... => <group> [priority]")
def table_indirect_add_with_group(session: Session, tokens: list[str]) -> Lines:
    """Add an entry that names a group."""
    yield from _add_indirect(session, tokens, "bm_mt_indirect_ws_add_entry", "grp_handle")


def _add_indirect(session: Session, tokens: list[str], method: str, handle_name: str) -> Lines:
    table = session.names.table(tokens[0])
    rest, priority = values.with_priority(table, tokens[1:])
    key, arguments = _split(rest)
    if len(arguments) != 1:
        raise InputError(f"one member or group follows =>, found {len(arguments)}")

    handle = session.standard(
        method,
        table_name=table.name,
        match_key=values.match_key(table, key),
        options=m.AddEntryOptions(priority),
        **{handle_name: values.i32(arguments[0], "a member or group")},
    )
    yield f"Entry has been added with handle {handle}"


@command("table_dump <table>")
def table_dump(session: Session, tokens: list[str]) -> Lines:
    """Print all entries of a table."""
    from ofan_p4.runtime_cli.profiles import profile_lines  # noqa: PLC0415

    table = session.names.table(tokens[0])
    yield texts.RULE
    yield "TABLE ENTRIES"
    for entry in session.standard("bm_mt_get_entries", table_name=table.name):
        yield texts.STARS
        yield from texts.entry_lines(table, entry)

    if table.profile is not None:
        yield from profile_lines(session, session.names.profile(table.profile))

    yield texts.RULE
    yield "Dumping default entry"
    default = session.standard("bm_mt_get_default_entry", table_name=table.name)
    yield from texts.action_lines(default)
    yield texts.RULE


@command("table_dump_entry <table> <entry>")
def table_dump_entry(session: Session, tokens: list[str]) -> Lines:
    """Print an entry."""
    table = session.names.table(tokens[0])
    handle = values.i32(tokens[1], "an entry")
    entry = session.standard("bm_mt_get_entry", table_name=table.name, entry_handle=handle)
    yield from texts.entry_lines(table, entry)


@command("table_dump_entry_from_key <table> ... [priority]")
def table_dump_entry_from_key(session: Session, tokens: list[str]) -> Lines:
    """Print the entry that has a key."""
    table = session.names.table(tokens[0])
    key, priority = values.with_priority(table, tokens[1:])
    entry = session.standard(
        "bm_mt_get_entry_from_key",
        table_name=table.name,
        match_key=values.match_key(table, key),
        options=m.AddEntryOptions(priority),
    )
    yield from texts.entry_lines(table, entry)


def _split(tokens: list[str]) -> tuple[list[str], list[str]]:
    """Return the words before and behind the arrow."""
    if "=>" not in tokens:
        raise InputError("=> is missing between key and parameters")

    arrow = tokens.index("=>")
    return tokens[:arrow], tokens[arrow + 1 :]


def _behind_arrow(tokens: list[str]) -> list[str]:
    return tokens[1:] if tokens[:1] == ["=>"] else tokens
