"""Pipelines: tables, conditions and action calls as one graph of blocks."""

from __future__ import annotations

from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.codegen.arguments import NOW, PACKET_LENGTH
from ofan_p4.softswitch.codegen.constants import Constants
from ofan_p4.softswitch.codegen.expressions import ZERO, Expressions, cut_to
from ofan_p4.softswitch.codegen.flow import (
    Block,
    Branch,
    Code,
    Graph,
    emit,
    is_number,
    topological,
    when,
)
from ofan_p4.softswitch.codegen.hashing import hash_value, parts_of
from ofan_p4.softswitch.codegen.layout import unsigned
from ofan_p4.softswitch.codegen.liveness import Liveness
from ofan_p4.softswitch.codegen.nodes import (
    Binary,
    Choice,
    Compare,
    Expression,
    Not,
    Number,
    Truth,
)
from ofan_p4.softswitch.codegen.packet_nodes import (
    DirectlyMetered,
    DirectMeter,
    Entry,
    EntryAction,
    Present,
)
from ofan_p4.softswitch.codegen.primitives import Primitives
from ofan_p4.softswitch.codegen.program import (
    NO_ACTION,
    USE_GROUP,
    VALID,
    Action,
    ActionCall,
    Conditional,
    Control,
    KeyField,
    Program,
    TableSpec,
    lookup_kind,
)
from ofan_p4.softswitch.codegen.statements import (
    Assign,
    Break,
    CountEntry,
    If,
    Key,
    Lookup,
    Resolve,
    Statements,
    TakeArguments,
    Touch,
    UseDefault,
    UseRecord,
)
from ofan_p4.softswitch.codegen.tracing import Label, Tracing
from ofan_p4.softswitch.codegen.variables import ACTION, EXITED, HIT, parameter


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

    def code(self, control: Control) -> Code:
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
                    code = (*self._tracing.called(action, is_hidden=True), *self._run(action))
                    graph[name] = Block(code, (Branch(None, node.next),))
                case TableSpec():
                    graph[name] = self._table(node)

        # Checked here, once: the code generator below would fail with a KeyError.
        for target in {control.start} | {
            branch.target for block in graph.values() for branch in block.branches
        }:
            if target is not None and target not in graph:
                raise PipelineError(f"pipeline {control.name!r} has no node {target!r}")

        return graph

    def _decided(self, node: Conditional, result: int) -> Code:
        return self._tracing.at(
            "condition",
            node.text or node.name,
            [(Label("result", 1), Number(result))],
            where=node.where,
        )

    def _run(self, action: Action) -> Code:
        """Return an action's body, which leaves the pipeline where the action has called `exit`."""
        self._tracing.where = action.where
        code = self._primitives.action(action)
        # `exit` ends the pipeline: its `break` leaves the pipeline's loop; without it in the action
        # there is nothing to test.
        exits = any(call["op"] == "exit" for call in action.primitives)

        return [*code, when(EXITED, [Break()])] if exits else code

    def _table(self, table: TableSpec) -> Block:
        if (
            not table.key
            # A table without key and with a constant default action always does the same. Compilers
            # make such a table of every statement outside of actions: their lookups would be most
            # of the work.
            and table.is_default_const
            and table.default_action is not None
            and not table.splits_on_hit
        ):
            return self._fixed(table)

        code = (*self._lookup(table), Assign(ACTION, EntryAction()))
        if table.splits_on_hit:
            arms = tuple(self._arm(table, action) for action in table.actions)
            chosen = [If(arms)] if arms else []
            ways = (Branch(HIT, table.next_hit), Branch(None, table.next_miss))
            return Block((*code, *chosen), ways)

        branches = [
            Branch(test, table.next_by_action.get(action, table.next_miss), body)
            for action in table.actions
            for test, body in (self._arm(table, action),)
        ]

        # Actions that do nothing come last: an `if` needs no arm for them where the miss does
        # nothing either.
        branches.sort(key=lambda branch: not branch.code)
        return Block(code, (*branches, Branch(None, table.next_miss)))

    def _fixed(self, table: TableSpec) -> Block:
        """Return a table that always runs the same action with the same arguments."""
        action = self._program.actions[table.default_action or 0]
        arguments = [
            Assign(parameter(i, bits), Number(value))
            for i, (bits, value) in enumerate(
                zip(action.parameter_bits, table.default_data, strict=False)
            )
        ]
        following = table.next_by_action.get(action.id, table.next_miss)
        counted = self._direct(table, UseRecord(self._tables[table.name]))
        traced = self._tracing.called(action, table.is_hidden)

        return Block(
            (*counted, *arguments, *traced, *self._run(action)), (Branch(None, following),)
        )

    def _arm(self, table: TableSpec, action_id: int) -> tuple[Expression, Statements]:
        """Return an action of a table and when it is run."""
        action = self._program.actions[action_id]
        parameters = tuple(parameter(i, bits) for i, bits in enumerate(action.parameter_bits))
        taken = [TakeArguments(parameters)] if parameters else []
        code = [*self._tracing.called(action), *self._run(action)]

        return is_number(ACTION, action.id), (*taken, *code) if code else ()

    def _lookup(self, table: TableSpec) -> Code:
        """Return the code that finds the entry that the packet hits, or the default entry."""
        number = self._tables[table.name]
        keys = [self._key(key) for key in table.key]
        # On a miss the default entry is treated like a hit entry.
        missed = UseDefault(number)
        code: Code
        if not keys:
            code = [missed, *([Assign(HIT, Truth(value=False))] if table.splits_on_hit else [])]
        else:
            parts = (
                Key(key.kind, value, key.bits) for key, value in zip(table.key, keys, strict=True)
            )
            touched = [Touch(NOW)] if table.supports_timeout else []
            code = [
                Lookup(number, lookup_kind(table), tuple(parts)),
                *([Assign(HIT, Present(Entry()))] if table.splits_on_hit else []),
                when(Not(Present(Entry())), [missed], touched),
            ]

        traced = self._tracing.looked_up(table, number, keys)
        return [*code, *traced, *self._direct(table, UseRecord()), *self._indirect(table)]

    def _key(self, key: KeyField) -> Expression:
        name = key.target[1]
        header = self._program.header(key.target[0])
        if name == VALID:
            return header.valid

        value = unsigned(self._program.field(header.name, name))
        # As on BMv2: 0, whatever the header held before it was removed.
        if not header.is_metadata:
            value = Choice(header.valid, value, ZERO)

        return value if key.mask is None else Binary("&", value, Number(key.mask))

    def _direct(self, table: TableSpec, record: UseRecord) -> Code:
        """Return the updates of the entry's direct counter and meter."""
        if not table.with_counters and table.direct_meter is None:
            return []

        code: Code = [record, *([CountEntry(PACKET_LENGTH)] if table.with_counters else [])]
        # A direct meter writes its colour into a field of the program, green (0) where the entry
        # has none.
        meter = next(
            (meter for meter in self._program.meters if meter.name == table.direct_meter), None
        )
        if meter is not None and meter.result is not None:
            colored = Assign(meter.result.var, DirectlyMetered())
            green = Assign(meter.result.var, ZERO)
            code.append(when(Present(DirectMeter()), [colored], [green]))

        return code

    def _indirect(self, table: TableSpec) -> Code:
        if table.profile is None:
            return []

        if table.profile not in self._profiles:
            raise PipelineError(
                f"table {table.name!r}: no action profile is called {table.profile!r}"
            )

        number = self._profiles[table.profile]
        profile = self._program.profiles()[number]
        key: Expression = ZERO

        if profile.algorithm is not None:
            inputs = parts_of(self._program, profile.inputs)
            # Only a group needs the hash; an entry may also name a single member.
            chosen = hash_value(self._constants, profile.algorithm, inputs)
            # BMv2 keeps the last 32 bits of any hash.
            is_group = Compare("==", EntryAction(), Number(USE_GROUP))
            key = Choice(is_group, cut_to(chosen, 32), ZERO)

        # USE_MEMBER and USE_GROUP lie below NO_ACTION.
        is_named = Compare("<", EntryAction(), Number(NO_ACTION))
        return [when(is_named, [Resolve(number, key)])]
