"""Pipelines: tables, conditions and action calls as one graph of source blocks."""

from __future__ import annotations

from collections.abc import Sequence

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.constants import Constants
from emulation.softswitch.codegen.expressions import Expressions, bits_of_field
from emulation.softswitch.codegen.flow import Block, Branch, Graph, Lines, emit, indent, topological
from emulation.softswitch.codegen.hashing import hash_value, parts_of
from emulation.softswitch.codegen.layout import concatenate
from emulation.softswitch.codegen.liveness import Liveness
from emulation.softswitch.codegen.primitives import Primitives
from emulation.softswitch.codegen.program import (
    VALID,
    Action,
    ActionCall,
    Conditional,
    Control,
    KeyField,
    Program,
    TableSpec,
)
from emulation.softswitch.codegen.tracing import Label, Tracing
from emulation.softswitch.errors import PipelineError
from emulation.softswitch.masked import NO_RANK
from emulation.softswitch.tables import NO_ACTION, USE_GROUP, lookup_kind


class ControlCode:
    """Generates the pipelines of one program."""

    def __init__(
        self,
        program: Program,
        constants: Constants,
        liveness: Liveness,
        primitives: Primitives,
        tracing: Tracing,
    ) -> None:
        self._program = program
        self._tracing = tracing
        self._constants = constants
        self._liveness = liveness
        self._primitives = primitives
        self._expressions = Expressions(program)
        # The numbers of tables and profiles run through both pipelines, ingress first, as in
        # `Pipeline`.
        self._tables = {table.name: i for i, table in enumerate(program.tables())}
        self._profiles = {profile.name: i for i, profile in enumerate(program.profiles())}

    def lines(self, control: Control) -> Lines:
        """Return a pipeline as statements; an `exit` leaves the loop around them."""
        graph = self._graph(control)
        # P4 has no loops between tables; a JSON with one would hold up every other packet.
        if control.start is not None and topological(graph, control.start) is None:
            raise PipelineError(f"pipeline {control.name!r} has a cycle")

        return emit(graph, control.start)

    def _graph(self, control: Control) -> Graph:
        graph: dict[str, Block] = {}
        for name, node in control.nodes.items():
            match node:
                case Conditional():
                    test = self._expressions.boolean(node.expression)
                    yes, no = (tuple(self._decided(node, result)) for result in (1, 0))
                    graph[name] = Block(
                        (), (Branch(test, node.on_true, yes), Branch(None, node.on_false, no))
                    )
                case ActionCall():
                    action = self._program.actions[node.action]
                    lines = [*self._tracing.called(action, is_hidden=True), *self._run(action)]
                    graph[name] = Block(tuple(lines), (Branch(None, node.next),))
                case TableSpec():
                    graph[name] = self._table(node)

        # Checked here, once: the code generator below would fail with a KeyError.
        for target in {control.start} | {
            branch.target for block in graph.values() for branch in block.branches
        }:
            if target is not None and target not in graph:
                raise PipelineError(f"pipeline {control.name!r} has no node {target!r}")

        return graph

    def _decided(self, node: Conditional, result: int) -> Lines:
        return self._tracing.at(
            "condition",
            node.text or node.name,
            [(Label("result", 1), str(result))],
            where=node.where,
        )

    def _run(self, action: Action) -> Lines:
        """Return an action's body, which leaves the pipeline where the action has called `exit`."""
        self._tracing.where = action.where
        lines = self._primitives.action(action)
        # `exit` ends the pipeline, whose loop the `break` leaves; without it in the action there is
        # nothing to test.
        exits = any(call["op"] == "exit" for call in action.primitives)

        return [*lines, f"if {names.EXITED}:", " break"] if exits else lines

    def _table(self, table: TableSpec) -> Block:
        if (
            not table.key
            # A table without key and with a constant default action always does the same. Compilers
            # make one of every statement outside of actions: to look each of them up would be most
            # of the work.
            and table.is_default_const
            and table.default_action is not None
            and not table.splits_on_hit
        ):
            return self._fixed(table)

        lines = [*self._lookup(table), f"{names.ACTION} = {names.ENTRY}[0]"]
        if table.splits_on_hit:
            return self._split(table, lines)

        arms = [
            self._arm(table, action, table.next_by_action.get(action, table.next_miss))
            for action in table.actions
        ]

        # Actions that do nothing come last: an `if` needs no arm for them where the miss does
        # nothing either.
        arms.sort(key=lambda arm: not arm.lines)
        return Block(tuple(lines), (*arms, Branch(None, table.next_miss)))

    def _fixed(self, table: TableSpec) -> Block:
        """Return a table that always runs the same action with the same arguments."""
        action = self._program.actions[table.default_action or 0]
        arguments = [
            f"{names.parameter(i)} = {value}" for i, value in enumerate(table.default_data)
        ]
        following = table.next_by_action.get(action.id, table.next_miss)
        counted = self._direct(table, f"{names.default(self._tables[table.name])}[0][2]")
        told = self._tracing.called(action, table.is_hidden)

        return Block((*counted, *arguments, *told, *self._run(action)), (Branch(None, following),))

    def _split(self, table: TableSpec, lines: Lines) -> Block:
        arms: Lines = []
        for action in table.actions:
            branch = self._arm(table, action, None)
            arms += [f"{'elif' if arms else 'if'} {branch.condition}:", *indent(branch.lines)]

        return Block(
            (*lines, *arms), (Branch(names.HIT, table.next_hit), Branch(None, table.next_miss))
        )

    def _arm(self, table: TableSpec, action_id: int, following: str | None) -> Branch:
        action = self._program.actions[action_id]
        arguments = [names.parameter(i) for i in range(len(action.parameter_bits))]
        # The comma makes it work for one argument too.
        unpack = [f"{', '.join(arguments)}, = {names.ENTRY}[1]"] if arguments else []
        lines = [*self._tracing.called(action), *self._run(action)]

        return Branch(
            f"{names.ACTION} == {action.id}", following, tuple([*unpack, *lines] if lines else ())
        )

    def _lookup(self, table: TableSpec) -> Lines:
        """Return what puts the entry that the packet hits, or the default entry, into `e`."""
        number = self._tables[table.name]
        keys = [self._source(key) for key in table.key]
        # On a miss the default entry is treated like one that was hit.
        missed = f"{names.ENTRY} = {names.default(number)}[0]"

        if not table.key:
            lines = [missed, *([f"{names.HIT} = False"] if table.splits_on_hit else [])]
        else:
            hit = [f"{names.HIT} = {names.ENTRY} is not None"] if table.splits_on_hit else []
            lines = [
                *_SEARCH[lookup_kind(table)](number, table.key, keys),
                *hit,
                f"if {names.ENTRY} is None:",
                *indent([missed]),
                *self._on_hit(table),
            ]

        told = self._tracing.looked_up(table, number, keys)
        counted = self._direct(table, f"{names.ENTRY}[2]")
        return [*lines, *told, *counted, *self._indirect(table)]

    def _source(self, key: KeyField) -> str:
        name = key.target[1]
        header = self._program.header(key.target[0])
        if name == VALID:
            return header.valid

        source = bits_of_field(self._program.field(header.name, name))
        # As on BMv2: 0, whatever the header held before it was removed.
        if not header.is_metadata:
            source = f"({source} if {header.valid} else 0)"

        return source if key.mask is None else f"({source} & {key.mask})"

    def _on_hit(self, table: TableSpec) -> Lines:
        if not table.supports_timeout:
            return []

        return ["else:", f" {names.ENTRY}[2].last_hit_ps = {names.NOW}"]

    def _direct(self, table: TableSpec, record: str) -> Lines:
        """Return the updates of the entry's direct counter and meter."""
        if not table.with_counters and table.direct_meter is None:
            return []

        lines = [f"{names.RECORD} = {record}"]
        if table.with_counters:
            lines += [
                f"{names.RECORD}.packets += 1",
                f"{names.RECORD}.octets += {names.PACKET_LENGTH}",
            ]

        # A direct meter writes its colour into a field of the program, green (0) where the entry
        # has none.
        meter = next(
            (meter for meter in self._program.meters if meter.name == table.direct_meter), None
        )
        if meter is not None and meter.result is not None:
            executed = f"{names.RECORD}.meter.execute({names.NOW}, {names.PACKET_LENGTH})"
            lines += [
                f"if {names.RECORD}.meter is not None:",
                f" {meter.result.var} = {executed}",
                "else:",
                f" {meter.result.var} = 0",
            ]

        return lines

    def _indirect(self, table: TableSpec) -> Lines:
        if table.profile is None:
            return []

        if table.profile not in self._profiles:
            raise PipelineError(
                f"table {table.name!r}: no action profile is called {table.profile!r}"
            )

        number = self._profiles[table.profile]
        profile = self._program.profiles()[number]
        key = "0"

        if profile.algorithm is not None:
            inputs = parts_of(self._program, profile.inputs)
            # Only a group needs the hash; an entry may also name a single member.
            chosen = hash_value(self._constants, profile.algorithm, inputs)
            # BMv2 keeps the last 32 bits of any hash.
            fits = chosen.bits is not None and chosen.bits <= 32
            cut = chosen.source if fits else f"({chosen.source}) & 0xffffffff"
            key = f"{cut} if {names.ENTRY}[0] == {USE_GROUP} else 0"

        return [
            # USE_MEMBER and USE_GROUP lie below NO_ACTION.
            f"if {names.ENTRY}[0] < {NO_ACTION}:",
            f" {names.ENTRY} = {names.profile(number)}.resolve({names.ENTRY}, {key})",
        ]


def _search_exact(number: int, _keys: Sequence[KeyField], sources: Sequence[str]) -> Lines:
    # `Table` makes its index the same way: no tuple around a single value.
    index = sources[0] if len(sources) == 1 else f"({', '.join(sources)})"
    return [f"{names.ENTRY} = {names.entries(number)}({index})"]


def _search_prefixes(number: int, keys: Sequence[KeyField], sources: Sequence[str]) -> Lines:
    # Longest prefix first, one dict per length: as many lookups as there are lengths in use.
    masked = [
        f"{source} & {names.MASK}" if key.kind == "lpm" else source
        for key, source in zip(keys, sources, strict=True)
    ]

    index = masked[0] if len(masked) == 1 else f"({', '.join(masked)})"
    return [
        f"{names.ENTRY} = None",
        f"for {names.MASK}, {names.LEVEL} in {names.entries(number)}:",
        f" {names.ENTRY} = {names.LEVEL}.get({index})",
        f" if {names.ENTRY} is not None:",
        "  break",
    ]


def _search_rows(number: int, keys: Sequence[KeyField], sources: Sequence[str]) -> Lines:
    pairs = list(zip(keys, sources, strict=True))
    masked = concatenate([(source, key.bits) for key, source in pairs if key.kind != "range"])
    ranges = [source for key, source in pairs if key.kind == "range"]
    # Ternary, lpm and exact fields stand side by side in one integer, compared at once under the
    # row's mask; a range has no mask and is compared by itself.
    ends = "".join(f"{names.low(i)}, {names.high(i)}, " for i in range(len(ranges)))
    tests = [
        f"{names.KEY} & {names.MASK} == {names.VALUE}",
        *(f"{names.low(i)} <= {source} <= {names.high(i)}" for i, source in enumerate(ranges)),
    ]
    row = f"{names.MASK}, {names.VALUE}, {ends}{names.CANDIDATE}"

    return [
        f"{names.ENTRY} = None",
        f"{names.KEY} = {masked}",
        f"for {row} in {names.entries(number)}:",
        f" if {' and '.join(tests)}:",
        f"  {names.ENTRY} = {names.CANDIDATE}",
        "  break",
    ]


def _search_masked(number: int, keys: Sequence[KeyField], sources: Sequence[str]) -> Lines:
    """Search by masks where that pays, as `MaskedEntries` has decided; else row by row."""
    found = names.CANDIDATE
    # Levels come in order of the best rank in them: once that is no better than what is found, no
    # later level can win.
    step = [
        f" if {names.RANK} < {names.BOUND}:",
        "  break",
        f" {found} = {names.LEVEL}({names.KEY} & {names.MASK})",
        f" if {found} is not None and {found}[0] < {names.RANK}:",
        f"  {names.RANK}, {names.ENTRY} = {found}",
    ]

    start, key, *rows = _search_rows(number, keys, sources)
    level = f"{names.BOUND}, {names.MASK}, {names.LEVEL}"
    return [
        start,
        key,
        f"if {names.levels(number)}:",
        f" {names.RANK} = {NO_RANK}",
        *indent([f"for {level} in {names.levels(number)}:", *step]),
        "else:",
        *indent(rows),
    ]


_SEARCH = {
    "exact": _search_exact,
    "lpm": _search_prefixes,
    "masked": _search_masked,
    "rows": _search_rows,
}
