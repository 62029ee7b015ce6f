"""A v1model switch around the evaluator: parser, tables, externs, and where packets go.

After ingress a packet is cloned, sent round again, multicast, dropped or sent on, in this order;
egress begins with an `egress_spec` of 0, so that only a drop of its own drops there. Both are
documented behaviour of the target (behavioral-model, docs/simple_switch.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tests.language import tree as n
from tests.language.evaluating import ExitSignal, ReturnSignal
from tests.language.externs import DROP, Results, Wishes
from tests.language.parsing import Packet, ParserEvaluator
from tests.language.scopes import Scope
from tests.language.tables import Entry
from tests.language.values import (
    UNDEFINED,
    Label,
    Num,
    ParserError,
    Struct,
    UndefinedError,
    copied,
    defined,
    fresh,
    to_bytes,
    zero,
)

# Ports, each with its egress_rid, by the number of a group or session.
Ports = dict[int, tuple[tuple[int, int], ...]]

NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
MOST_ROUNDS = 8
# Fields of clones that v1model does not define.
UNKNOWN = {"ingress_port": UNDEFINED, "parser_error": UNDEFINED, "checksum_error": UNDEFINED}
METADATA = 2


class Judge(ParserEvaluator):
    """A switch that runs a program; `groups` and `sessions` are the ports of copies."""

    def __init__(
        self,
        program: n.Program,
        entries: dict[str, list[Entry]],
        key_widths: dict[str, list[int]],
        groups: Ports | None = None,
        sessions: Ports | None = None,
    ) -> None:
        super().__init__(program, entries, key_widths)
        self.groups = groups or {}
        self.sessions = sessions or {}
        self.lists = self.field_lists()
        for instance in program.instances:
            self.root.values[instance.name] = self.instance(instance, self.root)

    def receive(self, port: int, data: bytes) -> Results:
        """Put a packet through the switch, with all its copies."""
        self.results = Results()
        self.steps = 0
        # An undefined packet may have ended anywhere.
        self.in_egress = False
        self.path = []
        self.ingress(port, data, kind=NORMAL, kept={}, rounds=MOST_ROUNDS)

        return self.results

    def ingress(self, port: int, data: bytes, kind: int, kept: dict[str, Any], rounds: int) -> None:
        """Run parser and ingress, then send the packet and its copies where they go."""
        if rounds == 0:
            raise UndefinedError

        parser, verify, control, *_ = (self.program.blocks[name] for name in self.program.main)
        state, payload = self.parsed(parser, port, data, kind=kind, kept=kept)
        self.wishes = Wishes()
        self.block(verify, state[:2])
        self.block(control, state)

        wishes = self.wishes
        standard = state[2].fields

        # The copy of a packet that is cut short is not defined.
        if wishes.truncate and (wishes.clone is not None or wishes.again is not None):
            raise UndefinedError

        if wishes.clone is not None:
            session, number = wishes.clone
            saved = self.saved(state[1], number)
            for copy_port, rid in self.sessions.get(session, ()):
                again, rest = self.parsed(parser, port, data, kind=INGRESS_CLONE, kept=saved)
                # The parser's results are gone, as with any clone.
                again[1] = zero(self.metadata_type())
                again[1].fields.update(copied(Struct(saved)).fields)
                again[2].fields.update(UNKNOWN)
                self.egress(again, rest, port=copy_port, rid=rid, came=port, rounds=rounds)

        if wishes.digest is not None:
            self.results.digests.append(wishes.digest)

        if wishes.again is not None:
            saved = self.saved(state[1], wishes.again)
            self.ingress(port, data, kind=RESUBMITTED, kept=saved, rounds=rounds - 1)
            return

        group = defined(standard["mcast_grp"]).value
        if group:
            for copy_port, rid in self.groups.get(group, ()):
                again = [copied(part) for part in state]
                again[2].fields["instance_type"] = Num(REPLICATED, 32)
                self.egress(
                    again,
                    payload,
                    port=copy_port,
                    rid=rid,
                    came=port,
                    rounds=rounds,
                    truncate=wishes.truncate,
                )
            return

        spec = defined(standard["egress_spec"]).value
        if spec != DROP:
            # The target marks a packet to one port as normal, also after another round.
            standard["instance_type"] = Num(NORMAL, 32)
            self.egress(
                state,
                payload,
                port=spec,
                rid=0,
                came=port,
                rounds=rounds,
                truncate=wishes.truncate,
            )

    def parsed(
        self, parser: n.Parser | n.Control, port: int, data: bytes, kind: int, kept: dict[str, Any]
    ) -> tuple[list[Any], bytes]:
        """Return headers, metadata and standard metadata behind the parser, and the payload."""
        assert isinstance(parser, n.Parser)

        _, headers, metadata, standard = parser.params
        state = [fresh(headers.type), zero(metadata.type), zero(standard.type)]
        state[1].fields.update(copied(Struct(kept)).fields)
        state[2].fields.update(
            ingress_port=Num(port, 9),
            packet_length=Num(len(data), 32),
            instance_type=Num(kind, 32),
        )
        self.packet = Packet(data)
        try:
            self.parse(parser, state)
        except ParserError as error:
            state[2].fields["parser_error"] = Label("error", error.args[0])

        return state, data[(self.packet.position + 7) // 8 :]

    def saved(self, metadata: Struct, number: int) -> dict[str, Any]:
        return {name: copied(metadata.fields[name]) for name in self.lists.get(number, ())}

    def field_lists(self) -> dict[int, list[str]]:
        """Return the metadata that copies keep, by the number of the list."""
        parser = self.program.blocks[self.program.main[0]]
        metadata = parser.params[METADATA].type
        fields_by_list: dict[int, list[str]] = defaultdict(list)
        assert isinstance(metadata, n.Struct)
        for name, numbers in metadata.lists:
            for number in numbers:
                fields_by_list[number].append(name)

        return fields_by_list

    def egress(
        self,
        state: list[Any],
        payload: bytes,
        *,
        port: int,
        rid: int,
        came: int,
        rounds: int,
        truncate: int = 0,
    ) -> None:
        """Run egress and deparser; `came` is the port that the packet came from."""
        _, _, _, control, compute, deparser = (
            self.program.blocks[name] for name in self.program.main
        )
        standard = state[2].fields
        standard.update(egress_port=Num(port, 9), egress_rid=Num(rid, 16), egress_spec=Num(0, 9))

        self.wishes = Wishes(truncate=truncate)
        self.in_egress = True
        self.block(control, state)
        self.in_egress = False
        wishes = self.wishes
        metadata = copied(state[1])

        if wishes.truncate and wishes.clone is not None:
            raise UndefinedError
        if wishes.clone is not None:
            session, number = wishes.clone
            saved = self.saved(metadata, number)
            for copy_port, copy_rid in self.sessions.get(session, ()):
                again = [copied(part) for part in state]
                again[1] = zero(self.metadata_type())
                again[1].fields.update(copied(Struct(saved)).fields)
                again[2].fields.update(instance_type=Num(EGRESS_CLONE, 32), **UNKNOWN)
                if rounds == 0:
                    raise UndefinedError
                self.egress(
                    again, payload, port=copy_port, rid=copy_rid, came=came, rounds=rounds - 1
                )

        if defined(standard["egress_spec"]).value == DROP:
            return

        self.block(compute, state[:2])
        self.emitted = []
        assert isinstance(deparser, n.Control)
        inner = Scope(self.root)
        inner.declare(deparser.params[0].name, deparser.params[0].type, "packet")
        inner.declare(deparser.params[1].name, deparser.params[1].type, state[0])
        self.run(deparser.body, inner)

        frame = to_bytes(self.emitted) + payload
        if wishes.truncate:
            frame = frame[: wishes.truncate]
        if wishes.again is not None:
            saved = self.saved(metadata, wishes.again)
            self.ingress(came, frame, kind=RECIRCULATED, kept=saved, rounds=rounds - 1)
            return

        self.results.sent.append((port, frame))

    def metadata_type(self) -> n.Type:
        return self.program.blocks[self.program.main[0]].params[METADATA].type

    def block(self, control: n.Control | n.Parser, state: Sequence[Any]) -> None:
        """Run a block of the package on the packet's own headers and metadata."""
        assert isinstance(control, n.Control)

        inner = Scope(self.root)
        for param, value in zip(control.params, state, strict=True):
            inner.declare(param.name, param.type, value)
        with suppress(ExitSignal):
            self.control(control, inner, control.name)

    def control(self, control: n.Control, scope: Scope, path: str) -> None:
        """Run the body of a control."""
        self.path.append(path)
        try:
            self.declare_locals(control.locals, scope)
            self.run(control.body, scope)
        except ReturnSignal:
            pass
        finally:
            self.path.pop()

    def apply(self, callee: Any, args: tuple[n.Expression, ...], scope: Scope) -> Any:
        """Apply a table, a control or a parser."""
        if isinstance(callee, n.Table):
            return self.look_up(callee, scope)
        block = self.program.blocks[str(callee.type)]
        with self.bound(block.params, args, scope, self.root) as inner:
            if isinstance(block, n.Control):
                self.control(block, inner, callee.name)
                return None
            try:
                self.walk(block, inner)
            except ParserError as error:
                # The arguments of a parser are not defined behind an error in it.
                raise UndefinedError from error

        return None

    def applied(self, call: n.Call, member: str, scope: Scope) -> Any:
        outcome = self.call(call, scope)
        return {"hit": outcome.hit, "miss": not outcome.hit, "action_run": outcome.action}[member]
