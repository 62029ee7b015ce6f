"""The entries of a table and the order in which they are tried."""

from __future__ import annotations

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import int_annotation
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.semantics.tables.actions import check_choice
from ofan_p4.compiler.semantics.tables.properties import find_property, flag
from ofan_p4.compiler.semantics.values import check_set, constant_int, is_known_set
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.diagnostics import CompileError

ENTRY_SETS = {
    "exact": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary),
    "optional": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary, t.Everything),
    "lpm": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary, t.Masked, t.Everything),
    "ternary": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary, t.Masked, t.Everything),
    "range": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary, t.Range, t.Everything),
}
"""What an entry may give for a key of each match kind."""


MAX_PRIORITY = (1 << 31) - 1


def check_entries(
    node: nd.Table, keys: tuple[td.Key, ...], actions: tuple[td.ActionEntry, ...], context: Context
) -> tuple[td.Entry, ...]:
    """Type the entries, with their priorities as ranks: the lowest is tried first."""
    if node.entries is None:
        return ()

    if not keys:
        fail("a table without keys cannot have entries", node.entries.span)

    ranks = _ranks(node, node.entries, context)
    # An exact or longest match is unique: there is nothing to rank.
    if ranks and all(key.match_kind in ("exact", "lpm", "selector") for key in keys):
        fail(
            "entries of a table with exact and lpm keys only have no priorities", node.entries.span
        )

    if not ranks:
        ranks = [(_annotated_rank(entry), None) for entry in node.entries.entries]

    return tuple(
        _entry(entry, rank, keys, actions=actions, context=context)
        for entry, rank in zip(node.entries.entries, ranks, strict=True)
    )


def check_ranking(node: nd.Table, context: Context) -> tuple[bool, int]:
    """Return whether the largest priority wins, and the step between those that are not given."""
    # The language's default where the property is not given.
    largest_wins = find_property(node, "largest_priority_wins") is None or flag(
        node, "largest_priority_wins", context
    )
    step = find_property(node, "priority_delta")
    if step is None:
        return largest_wins, 1

    subject = "'priority_delta'"
    return largest_wins, constant_int(step.value, context, subject, low=1, high=MAX_PRIORITY)


Rank = tuple[ty.Expression | None, int | None]
"""The lowest of the first is tried first; the second is the priority of the program."""


def _ranks(node: nd.Table, entries: nd.Entries, context: Context) -> list[Rank]:
    """Return the rank of every entry; nothing if none has a priority."""
    if all(entry.priority is None for entry in entries.entries):
        return []

    largest_wins, delta = check_ranking(node, context)
    if entries.entries[0].priority is None:
        fail("the first entry needs a priority, since others have one", entries.entries[0].span)

    priorities: list[int] = []
    for entry in entries.entries:
        # An entry without a priority follows the one before it by the step.
        following = priorities[-1] + (-delta if largest_wins else delta) if priorities else 0
        written = entry.priority
        priorities.append(
            constant_int(written, context, noun="a priority", low=1, high=MAX_PRIORITY)
            if written is not None
            else following
        )

        if priorities[-1] < 1:
            fail(
                f"the priority of this entry is {priorities[-1]}, but must be positive", entry.span
            )

    # BMv2 tries the lowest number first, so "largest wins" is turned round.
    ranks = (
        [max(priorities) + 1 - priority for priority in priorities] if largest_wins else priorities
    )
    return [
        (t.Literal(entry.span, ty.INT, rank), number if largest_wins else None)
        for entry, rank, number in zip(entries.entries, ranks, priorities, strict=True)
    ]


def _entry(
    node: nd.Entry,
    rank: Rank,
    keys: tuple[td.Key, ...],
    actions: tuple[td.ActionEntry, ...],
    context: Context,
) -> td.Entry:
    matched = tuple(key for key in keys if key.match_kind != "selector")
    entry_keys = node.keys
    # One `default` or `_` stands for all keys.
    if len(entry_keys) == 1 and isinstance(entry_keys[0], n.DefaultExpression):
        entry_keys = entry_keys * len(matched)

    if len(entry_keys) == 1 and isinstance(entry_keys[0], n.ListExpression):
        entry_keys = entry_keys[0].items

    if len(entry_keys) != len(matched):
        fail(f"the table has {len(matched)} keys, found {len(entry_keys)}", node.span)

    sets = tuple(
        _entry_key(written, key, context) for written, key in zip(entry_keys, matched, strict=True)
    )
    choice = check_choice(node.action, actions, context)
    if any(note.name == "defaultonly" for note in choice.entry.annotations):
        raise CompileError(
            f"action '{choice.entry.action.name}' is annotated @defaultonly", node.action.span
        )

    return td.Entry(node.span, keys=sets, choice=choice, priority=rank[0], own_priority=rank[1])


def _annotated_rank(node: nd.Entry) -> ty.Expression | None:
    """Return the rank that `@priority(n)` gives, by which the target tries the lowest first."""
    number = int_annotation(node.annotations, "priority")
    return t.Literal(node.span, ty.INT, number) if number is not None else None


def _entry_key(node: n.Expression, key: td.Key, context: Context) -> ty.Expression:
    value = check_set(node, key.expression.type, context)
    allowed = ENTRY_SETS.get(key.match_kind, ())
    if not isinstance(value, allowed):
        fail(f"a key of kind '{key.match_kind}' cannot match this", node.span)

    if not is_known_set(value):
        fail("what an entry matches must be known at compile time", node.span)

    return value
