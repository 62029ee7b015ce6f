"""A table as a whole."""

from __future__ import annotations

from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.semantics.tables.actions import check_actions, default_action
from ofan_p4.compiler.semantics.tables.entries import check_entries, check_ranking
from ofan_p4.compiler.semantics.tables.keys import check_key, check_kinds
from ofan_p4.compiler.semantics.tables.properties import (
    PROPERTIES,
    constant_property,
    find_property,
    flag,
    instance_property,
)
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.diagnostics import CompileWarning


def check_table(node: nd.Table, context: Context) -> td.Table:
    """Type a table."""
    # Keys and arguments may not apply tables or call actions.
    context = context.nested(place="table")
    keys = tuple(check_key(key, context.nested(place="key")) for key in node.key)
    check_kinds(keys)
    alone = next((key for key in keys if key.match_kind == "selector"), None)
    if alone and find_property(node, "implementation") is None:
        message = "this key is ignored: the table has no 'implementation' that selects"
        context.globals.warnings.append(CompileWarning("ignored", message, alone.span))

    actions = check_actions(node, context)
    default = find_property(node, "default_action")
    properties = {item.name: item for item in node.properties}

    for name, item in properties.items():
        if name not in PROPERTIES:
            fail(f"table property '{name}' is not supported", item.span)

    check_ranking(node, context)
    choice = default_action(node, default, actions, context)
    # NoAction that the table does not list: it must have an id and a place in the JSON.
    if choice.entry not in actions:
        actions = (*actions, choice.entry)

    return td.Table(
        node.name_span,
        name=node.name,
        keys=keys,
        actions=actions,
        default=choice,
        default_const=default is not None and default.const,
        entries=check_entries(node, keys, actions, context),
        entries_const=node.entries is not None and node.entries.const,
        size=constant_property(node, "size", ty.INT, context),
        implementation=instance_property(
            node, "implementation", ("action_profile", "action_selector"), context
        ),
        counters=instance_property(node, "counters", ("direct_counter",), context),
        meters=instance_property(node, "meters", ("direct_meter",), context),
        support_timeout=flag(node, "support_timeout", context),
        annotations=node.annotations,
    )
