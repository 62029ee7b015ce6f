"""Flow as the graph of a pipeline: tables, conditionals, and tables without keys that run steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePath

from ofan_p4.compiler.backend.actions import primitives
from ofan_p4.compiler.backend.encode import Json, expression, hexstr, lvalue, source_info
from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.flow import (
    Action,
    Apply,
    Entry,
    Flow,
    Item,
    Key,
    Label,
    Leave,
    Match,
    Object,
    Repeat,
    Scope,
    Stop,
    Table,
    Test,
    leaves,
    parts_of,
)
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import CompileError, Span


@dataclass(slots=True)
class Actions:
    """All actions of the program with their ids."""

    json: list[Json] = field(default_factory=list)
    ids: dict[Action, int] = field(default_factory=dict)

    def id_of(self, action: Action) -> int:
        """Return the id of an action; its first use adds it."""
        if action not in self.ids:
            self.ids[action] = len(self.json)
            self.json.append(
                {
                    "name": action.name,
                    "id": self.ids[action],
                    "runtime_data": [
                        {"name": name, "bitwidth": width} for name, width in action.params
                    ],
                    "primitives": primitives(action.flow),
                    "source_info": source_info(action.span),
                }
            )

        return self.ids[action]


@dataclass(slots=True)
class Numbers:
    """Ids that are unique in the whole program."""

    tables: Iterator[int] = field(default_factory=count)
    conditionals: Iterator[int] = field(default_factory=count)
    profiles: Iterator[int] = field(default_factory=count)
    synthetic: set[str] = field(default_factory=set)


def pipeline(
    name: str, number: int, flow: Flow, span: Span | None, actions: Actions, numbers: Numbers
) -> Json:
    """Return a pipeline of the JSON."""
    linker = _Linker(actions, numbers)
    start = linker.link(flow, None)
    json: Json = {"name": name, "id": number, "init_table": start}

    if span is not None:
        json["source_info"] = source_info(span)

    return {
        **json,
        "tables": sorted(linker.tables.values(), key=lambda table: int(table["id"])),
        "action_profiles": list(linker.profiles.values()),
        "conditionals": linker.conditionals[::-1],
    }


class _Linker:
    """A walk of flow backwards, so that every node knows the name of the next node."""

    def __init__(self, actions: Actions, numbers: Numbers) -> None:
        self.actions = actions
        self.numbers = numbers
        self.tables: dict[str, Json] = {}
        self.conditionals: list[Json] = []
        self.profiles: dict[str, Json] = {}
        self.labels: dict[Label, str | None] = {}
        self.applied: dict[str, Span] = {}

    def link(self, flow: Flow, after: str | None) -> str | None:
        """Return the name of the first node of a flow that goes on with `after`."""
        steps: list[Item] = []
        # The name of a node's successor is part of the node, so the end comes first.
        for item in reversed(_reachable(flow)):
            if isinstance(item, ir.Step) or _is_loop(item):
                steps.insert(0, item)
                continue

            assert isinstance(item, Test | Scope | Leave | Stop | Apply)
            after = self._node(item, self._run(steps, after))
            steps = []

        return self._run(steps, after)

    def _node(self, item: Test | Scope | Leave | Stop | Apply, after: str | None) -> str | None:
        match item:
            case Test():
                return self._test(item, after)
            case Scope(label, body):
                # Walking backwards, the node after the scope is known before anything inside leaves
                # it.
                self.labels[label] = after
                return self.link(body, after)
            case Leave(label):
                return self.labels[label]
            case Stop():
                return None
            case Apply():
                return self._apply(item, after)

    def _test(self, item: Test, after: str | None) -> str:
        then = self.link(item.then, after)
        otherwise = self.link(item.otherwise, after)
        number = next(self.numbers.conditionals)
        name = f"node_{number}"
        self.conditionals.append(
            {
                "name": name,
                "id": number,
                "source_info": source_info(item.span),
                "expression": expression(item.condition),
                "true_next": then,
                "false_next": otherwise,
            }
        )

        return name

    def _run(self, steps: list[Item], after: str | None) -> str | None:
        """Add a table without keys that runs steps, named after the place of the first."""
        if not steps:
            return after

        # Named after the source, so that BMv2's log and debugger say where they are.
        span = _span_of(steps)
        name = self._synthetic_name(span)
        action = Action(name, params=(), flow=tuple(steps), span=span, source=None)
        number = next(self.numbers.tables)
        default = {"action_id": self.actions.id_of(action), "action_const": True, "action_data": []}
        self.tables[f"tbl_{name}"] = {
            **_table_head(f"tbl_{name}", number, span, match_type="exact", keys=[]),
            "type": "simple",
            "max_size": 1024,
            "with_counters": False,
            "support_timeout": False,
            "direct_meters": None,
            "action_ids": [default["action_id"]],
            "actions": [name],
            "base_default_next": after,
            "next_tables": {name: after},
            "default_entry": {**default, "action_entry_const": True},
        }

        return f"tbl_{name}"

    def _synthetic_name(self, span: Span) -> str:
        where = span.location
        base = name = f"{PurePath(where.file).stem}{where.line}"
        number = 0

        while name in self.numbers.synthetic:
            name = f"{base}_{number}"
            number = number + 1

        self.numbers.synthetic.add(name)
        return name

    def _apply(self, item: Apply, after: str | None) -> str:
        table = item.table
        following = (
            self._hit_or_miss(item, after) if not item.by_action else self._by_action(item, after)
        )
        present = self.tables.get(table.name)

        if present is not None:
            # A table has one set of successors in BMv2, so a second application must go on alike.
            if {key: present[key] for key in following} != following:
                # Flow is walked backwards, so the later application may be the one seen first.
                later = max(item.span, self.applied[table.name], key=lambda span: span.start)
                raise CompileError(
                    f"table '{table.source.name}' is applied more than once, "
                    "which the target cannot do",
                    later,
                )

            return table.name

        self.applied[table.name] = item.span
        self.tables[table.name] = {**self._table(table), **following}
        return table.name

    def _hit_or_miss(self, item: Apply, after: str | None) -> Json:
        following = {"__HIT__": self.link(item.hit, after), "__MISS__": self.link(item.miss, after)}
        return {"base_default_next": None, "next_tables": following}

    def _by_action(self, item: Apply, after: str | None) -> Json:
        default = self.link(item.default, after) if item.default else after
        following = {action.name: default for action in item.table.actions}
        for actions, flow in item.cases:
            entry = default if flow is item.default and item.default else self.link(flow, after)
            following.update({action.name: entry for action in actions})

        return {"base_default_next": default, "next_tables": following}

    # Tables

    def _table(self, table: Table) -> Json:
        number = next(self.numbers.tables)
        kinds = [key.match_kind for key in table.keys]
        head = _table_head(
            table.name,
            number,
            span=table.source.span,
            match_type=_match_type(kinds),
            keys=[_key(key) for key in table.keys],
        )

        json: Json = {
            **head,
            **self._implementation(table),
            "max_size": _size(table),
            "with_counters": table.counters is not None,
            "support_timeout": table.source.support_timeout,
            "direct_meters": table.meters.name if table.meters else None,
            "action_ids": [self.actions.id_of(action) for action in table.actions],
            "actions": [action.name for action in table.actions],
        }

        if table.implementation is None:
            json["default_entry"] = self._default(table)

        if table.entries:
            json["entries"] = [self._entry(entry, table) for entry in table.entries]

        return json

    def _default(self, table: Table) -> Json:
        return {
            "action_id": self.actions.id_of(table.default),
            "action_const": table.source.default_const,
            "action_data": _data(table.default, table.default_args),
            "action_entry_const": table.source.default_const,
        }

    def _entry(self, entry: Entry, table: Table) -> Json:
        keys = [_match(match, key) for match, key in zip(entry.matches, table.keys, strict=True)]
        action = {
            "action_id": self.actions.id_of(entry.action),
            "action_data": _data(entry.action, entry.args),
        }

        json: Json = {
            "source_info": source_info(entry.span),
            "match_key": keys,
            "action_entry": action,
            "priority": entry.priority,
        }

        # For our switch: BMv2 tries the lowest first and could not tell it from `priority`.
        if entry.own_priority is not None:
            json["p4runtime_priority"] = entry.own_priority

        return json

    def _implementation(self, table: Table) -> Json:
        owner = table.implementation
        if owner is None:
            return {"type": "simple"}

        if table.entries:
            fail("a table with an action profile cannot have entries", table.source.span)

        profile: Json = {"name": owner.name, "max_size": owner.args["size"]}
        if owner.kind == "action_selector":
            profile["selector"] = _selector(owner, table)

        present = self.profiles.get(owner.name)
        if present is None:
            info = source_info(owner.source.span)
            self.profiles[owner.name] = {
                **profile,
                "id": next(self.numbers.profiles),
                "source_info": info,
            }
        elif present.get("selector") != profile.get("selector"):
            fail(
                f"tables that share '{owner.name}' must have the same selector keys",
                table.source.span,
            )

        kind = "indirect_ws" if owner.kind == "action_selector" else "indirect"
        return {"type": kind, "action_profile": owner.name}


def _size(table: Table) -> int:
    """Return how many entries a table holds; a table of constant entries holds only these."""
    if table.entries and table.source.entries_const:
        return len(table.entries)

    return max(table.size, len(table.entries))


def _is_loop(item: Item) -> bool:
    """Say whether an item loops and so must run within an action: the graph has no way back."""
    if isinstance(item, Repeat):
        return True

    return isinstance(item, Scope) and _loops_in(item.body, item.label)


def _loops_in(flow: Flow, label: Label) -> bool:
    """Say whether a loop in a flow can be left to the label.

    The loop itself stands in the flow of its own scope.
    """
    return any(
        (_is_loop(item) and (isinstance(item, Repeat) or leaves(item, label)))
        or (isinstance(item, Test | Scope) and _loops_in(parts_of(item), label))
        for item in flow
    )


def _span_of(items: Sequence[Item]) -> Span:
    """Return the place of the first step."""
    first = items[0]
    assert not isinstance(first, Leave)
    return _span_of(first.body) if isinstance(first, Scope) else first.span


def _reachable(flow: Flow) -> Flow:
    for index, item in enumerate(flow):
        if isinstance(item, Leave | Stop):
            return flow[: index + 1]

    return flow


def _table_head(name: str, number: int, span: Span, match_type: str, keys: list[Json]) -> Json:
    return {
        "name": name,
        "id": number,
        "source_info": source_info(span),
        "key": keys,
        "match_type": match_type,
    }


def _match_type(kinds: list[str]) -> str:
    # A table is as general as its most general key.
    for kind in ("range", "ternary", "optional", "lpm"):
        if kind in kinds:
            return "ternary" if kind == "optional" else kind

    return "exact"


def _key(key: Key) -> Json:
    # BMv2 has no optional keys: they are ternary, with a mask of all ones or of none.
    kind = "ternary" if key.match_kind == "optional" else key.match_kind
    return {"match_type": kind, "name": key.name, "target": _target(key.operand), "mask": None}


def _target(operand: ir.Value) -> list[str]:
    match operand:
        case ir.FieldRef(header, name):
            return [header, name]
        case ir.Valid(ir.HeaderAt(name)):
            return [name, "$valid$"]

    raise AssertionError(operand)


def _selector(owner: Object, table: Table) -> Json:
    inputs = [lvalue(value) for value in table.selectors if isinstance(value, ir.FieldRef)]
    return {"algo": owner.args["algorithm"], "input": inputs}


def _match(match: Match, key: Key) -> Json:
    width = ty.width_of(key.operand.type)
    value = hexstr(match.value, width)
    second = hexstr(match.second, width)

    match key.match_kind:
        case "exact":
            return {"match_type": "exact", "key": value}
        case "lpm":
            return {"match_type": "lpm", "key": value, "prefix_length": match.second.bit_count()}
        case "range":
            return {"match_type": "range", "start": value, "end": second}
        case _:
            return {"match_type": "ternary", "key": value, "mask": second}


def _data(action: Action, args: tuple[int, ...]) -> list[str]:
    """Return run-time arguments; negative numbers in two's complement."""
    return [
        hexstr(value & ((1 << width) - 1), width)
        for value, (_, width) in zip(args, action.params, strict=True)
    ]
