"""The two functions that a program becomes: `ingress` and `egress`.

    ingress(data, port, length, now, resume)
        -> (egress_spec, mcast_grp, priority, change of length, IngressRequests or None, state)
    egress(state, port, priority, length, instance, rid, now,
           enq_us, enq_depth, delta_us, deq_depth)
        -> (frame or None, EgressRequests or None)

`names` lists the arguments, `softswitch.base.requests` the fields of requests and of `resume`.
`state` is a tuple of the variables that egress needs. A clone leaves ingress after the parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ofan_p4.softswitch.base.requests import INGRESS_CLONE
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.arguments import (
    EGRESS_ARGUMENTS,
    EGRESS_METADATA,
    INGRESS_ARGUMENTS,
    INGRESS_METADATA,
    OUTCOME,
)
from ofan_p4.softswitch.codegen.checksums import ChecksumCode
from ofan_p4.softswitch.codegen.constants import Constants
from ofan_p4.softswitch.codegen.controls import ControlCode
from ofan_p4.softswitch.codegen.deparsing import DeparserCode
from ofan_p4.softswitch.codegen.expressions import ZERO, cut
from ofan_p4.softswitch.codegen.flow import Code, when
from ofan_p4.softswitch.codegen.hashing import parts_of
from ofan_p4.softswitch.codegen.liveness import Liveness, state_used
from ofan_p4.softswitch.codegen.nodes import (
    Bytes,
    Compare,
    DropPort,
    Expression,
    Local,
    Logic,
    Number,
    Zeros,
)
from ofan_p4.softswitch.codegen.packet_nodes import (
    Asked,
    FrameLength,
    Present,
    Resumed,
    ResumedList,
    ResumedType,
)
from ofan_p4.softswitch.codegen.parsing import ParserCode
from ofan_p4.softswitch.codegen.primitives import Primitives
from ofan_p4.softswitch.codegen.printed_statements import indented, lines
from ofan_p4.softswitch.codegen.program import FieldList, Program
from ofan_p4.softswitch.codegen.statements import (
    AskAll,
    AskNothing,
    Assign,
    Clear,
    CutFrame,
    Forget,
    ForgetValues,
    If,
    KeepState,
    KeepValues,
    Measure,
    Restore,
    ReturnEgress,
    ReturnIngress,
    Statements,
    TakeState,
)
from ofan_p4.softswitch.codegen.tracing import Tracing
from ofan_p4.softswitch.codegen.variables import CUTOFF, EXITED, GROWTH, PARSER_ERROR

# More bytes than any frame has, so that `min` works before the first truncate.
NO_CUTOFF = 1 << 30
Travelling = tuple[Local | Bytes, ...]


@dataclass(frozen=True)
class Assembly:
    """The bodies of both functions and the objects that their names stand for.

    `state` are the variables that egress is given, `parser` is the part of ingress that parses.
    """

    ingress: Statements
    egress: Statements
    state: Travelling
    constants: Mapping[str, object]
    parser: Statements

    @cached_property
    def source(self) -> str:
        """The text of both functions, a Python module."""
        return "\n".join(
            [
                *_function("ingress", INGRESS_ARGUMENTS, self.ingress),
                *_function("egress", EGRESS_ARGUMENTS, self.egress),
                "",
            ]
        )


def assemble(program: Program, is_traced: bool = False) -> Assembly:
    """Generate the code of a program, once to learn its used variables and once for good.

    Traced code reports every step.
    """
    # Only finished code shows the fields that a program reads and the headers that it never
    # modifies. The second code comes from the same generators, so that it does the same with less.
    first = _Assembler(program, Liveness(program), is_traced)
    ingress, egress, *_ = first.bodies()
    second = _Assembler(program, first.liveness.learn([*ingress, *egress]), is_traced)

    return second.assembly()


class _Assembler:
    def __init__(self, program: Program, liveness: Liveness, is_traced: bool) -> None:
        self._program = program
        self.liveness = liveness
        self.constants = Constants()
        self._tracing = Tracing(program, self.constants, is_traced)
        self._primitives = Primitives(program, self.constants, liveness, self._tracing)
        self._parser = ParserCode(
            program,
            constants=self.constants,
            liveness=liveness,
            primitives=self._primitives,
            tracing=self._tracing,
        )

        self._controls = ControlCode(
            program,
            constants=self.constants,
            liveness=liveness,
            primitives=self._primitives,
            tracing=self._tracing,
        )

        self._checksums = ChecksumCode(program, self.constants, liveness, self._tracing)
        self._deparser = DeparserCode(program, self.constants, liveness, self._tracing)
        self._used_by_ingress: frozenset[str] = frozenset()

    def bodies(self) -> tuple[Code, Code, Travelling, Code]:
        """Return the statements of both functions, the variables handed to egress, the parser."""
        # `Primitives.used` fills while the pipelines are generated: its readers (the requests, the
        # way out for clones) come after them.
        start = self._ingress_start()
        parser = self._parser.code()
        rest = self._ingress_rest()
        egress = self._egress_pipeline()
        end = self._egress_end()
        loads, _ = state_used([*egress, *end])
        _, stores = state_used([*start, *parser, *rest])
        # Variables that egress does not read need not travel, and variables that ingress has not
        # touched still have their first value. Sorted, so that the same program always becomes the
        # same code.
        state = tuple(loads[name] for name in sorted(loads.keys() & stores.keys()))
        ingress = [*start, *parser, *self._leave_clone(state), *rest, *self._ingress_end(state)]

        return ingress, [*egress, *self._egress_clone(state), *end], state, parser

    def assembly(self) -> Assembly:
        """Return both functions."""
        ingress, egress, state, parser = self.bodies()
        travelling = {variable.name for variable in state}
        return Assembly(
            ingress=(*self._initial(ingress), *ingress),
            egress=(TakeState(state), *self._initial(egress, travelling), *egress),
            state=state,
            constants=self.constants.values,
            parser=tuple(parser),
        )

    def _initial(self, body: Code, stored: Iterable[str] = ()) -> Code:
        """Return the code that gives every variable that the body loads its first value."""
        # Python refuses to load a local variable before its first store, but a program may read a
        # field that nothing has set: metadata starts at 0 in BMv2, and here every field does.
        loads, _ = state_used(body)
        defaults = self._defaults()
        names_ = sorted(loads.keys() - stored)
        zeros = tuple(loads[name] for name in names_ if name not in defaults)
        defaulted = [Assign(loads[name], defaults[name]) for name in names_ if name in defaults]

        return [*([Clear(zeros)] if zeros else []), *defaulted]

    def _defaults(self) -> dict[str, Expression]:
        """Return the first values of variables that do not start at 0."""
        values: dict[str, Expression] = {CUTOFF.name: Number(NO_CUTOFF)}
        for header in self._program.headers:
            values[header.raw.name] = Zeros(0)
            values.update({field.var.name: Zeros(0) for field in header.fields if field.is_varbit})
            for chunk in self.liveness.plan(header):
                if chunk.is_bytes:
                    values[chunk.var.name] = chunk.zeros()[0]

        return values

    def _set_metadata(self, values: Mapping[str, Expression]) -> Code:
        """Return assignments to those intrinsic fields that the program has and uses."""
        fields = {name: self._program.intrinsic(name) for name in values}
        return [
            # The switch hands over plain integers of any size; a field has its width.
            Assign(field.var, cut(field, values[name]))
            for name, field in fields.items()
            if field is not None and self.liveness.is_live(field)
        ]

    def _uses(self, *primitives: str) -> bool:
        return any(name in self._primitives.used for name in primitives)

    def _ingress_start(self) -> Code:
        """Set the metadata of a fresh packet, or of a packet that comes round again."""
        again = [
            *self._restore(),
            # Last, because a preserved field list may hold the instance type of the round before.
            *self._set_metadata({"standard_metadata.instance_type": ResumedType()}),
        ]

        return [
            Measure(),
            Clear((GROWTH, EXITED)),
            *self._set_metadata(INGRESS_METADATA),
            *([when(Present(Resumed()), again)] if again else []),
        ]

    def _restore(self) -> Code:
        """Return the code that gives the fields of the preserved list back their values."""
        lists = {
            number: self._list_fields(item) for number, item in self._program.field_lists.items()
        }
        return _by_list(
            ResumedList(),
            {number: (Restore(targets),) for number, targets in lists.items() if targets},
        )

    def _list_fields(self, field_list: FieldList) -> Travelling:
        return tuple(
            self._program.field(*item["value"]).var
            for item in field_list.elements
            if item.get("type") == "field"
        )

    def _leave_clone(self, state: Travelling) -> Code:
        """Return the way out for a clone of ingress: parsed, its metadata that of its list."""
        if not self._uses("clone_ingress_pkt_to_egress"):
            return []

        # BMv2 parses a clone of ingress again, to save every other packet the copy of its headers;
        # so do we. Of its metadata only the field list survives.
        metadata = tuple(variable for variable in state if variable.name in self._metadata)
        body = [
            *([Clear(metadata)] if metadata else []),
            *self._restore(),
            ReturnIngress((ZERO,) * 4, asks=False, state=state),
        ]

        # Two tests, since machine code evaluates both sides of `and`, and a None has no parts.
        is_clone = when(Compare("==", ResumedType(), Number(INGRESS_CLONE)), body)
        return [when(Present(Resumed()), [is_clone])]

    @cached_property
    def _metadata(self) -> frozenset[str]:
        """The variables of metadata: a header travels with its clone, metadata does not."""
        return frozenset(
            field.var.name
            for header in self._program.headers
            if header.is_metadata
            for field in header.fields
        )

    def _ingress_rest(self) -> Code:
        """Return the code behind the parser: checks and the ingress pipeline."""
        pipeline = self._controls.code(self._program.ingress)
        # A request of egress alone, as a digest there, is not looked at behind ingress, as in BMv2.
        self._used_by_ingress = frozenset(self._primitives.used)
        flags = [Forget(name) for name, used in self._ingress_requests().items() if used]
        return [
            *self._set_metadata({"standard_metadata.parser_error": PARSER_ERROR}),
            *self._checksums.verify(),
            *flags,
            *pipeline,
        ]

    def _ingress_requests(self) -> dict[str, bool]:
        return {
            names.CLONE: "clone_ingress_pkt_to_egress" in self._used_by_ingress,
            names.DIGEST: "generate_digest" in self._used_by_ingress,
            names.RESUBMIT: "resubmit" in self._used_by_ingress,
        }

    def _ingress_end(self, state: Travelling) -> Code:
        outcome = (*(self._intrinsic_value(name) for name in OUTCOME), GROWTH)
        return [*self._requests(), ReturnIngress(outcome, asks=True, state=state)]

    def _intrinsic_value(self, name: str) -> Expression:
        field = self._program.intrinsic(name)
        return ZERO if field is None else field.var

    def _requests(self) -> Code:
        """Return the code that notes all of the packet's requests."""
        requested = self._ingress_requests()
        if not any(requested.values()):
            return [AskNothing()]

        code: Code = []
        for name, used in requested.items():
            if used:
                code += [ForgetValues(name), when(Present(Asked(name)), self._capture(name))]

        # Most packets ask for nothing: one test sends them past all of it.
        all_ = AskAll(tuple((name, used, False) for name, used in requested.items()))
        return [AskNothing(), when(_any_asked(requested), [*code, all_])]

    def _capture(self, name: str) -> Code:
        """Return the code that fetches the values of the list that a request names."""
        lists = self._program.learn_lists if name == names.DIGEST else self._program.field_lists
        number = Asked(name, 1 if name == names.CLONE else None)
        values: dict[int, tuple[Expression, ...]] = {
            key: self._list_fields(item) if name != names.DIGEST else self._digest_values(item)
            for key, item in lists.items()
        }
        return _by_list(number, {key: (KeepValues(name, key, v),) for key, v in values.items()})

    def _digest_values(self, item: FieldList) -> tuple[Expression, ...]:
        parts = [part for element in item.elements for part in parts_of(self._program, [element])]
        return tuple(part.value for part in parts)

    def _egress_pipeline(self) -> Code:
        pipeline = self._controls.code(self._program.egress)
        flags = [Forget(name) for name, used in self._egress_requests().items() if used]
        return [
            Clear((GROWTH, EXITED)),
            *self._set_metadata(EGRESS_METADATA),
            *self._clear_spec(),
            *flags,
            *pipeline,
        ]

    def _egress_requests(self) -> dict[str, bool]:
        return {
            names.CLONE: self._uses("clone_egress_pkt_to_egress"),
            names.RECIRCULATE: self._uses("recirculate"),
        }

    def _clear_spec(self) -> Code:
        # BMv2 clears egress_spec before egress: there it can only be set to drop this very copy,
        # whatever ingress chose.
        spec = self._program.intrinsic("standard_metadata.egress_spec")
        return [Assign(spec.var, ZERO)] if spec is not None else []

    def _egress_clone(self, state: Travelling) -> Code:
        """Return the code for the state of a clone of egress: headers as now, metadata by list."""
        if not self._uses("clone_egress_pkt_to_egress"):
            return []

        lists = {
            number: self._list_fields(item) for number, item in self._program.field_lists.items()
        }
        body = [
            self._cloned(state, ()),
            *_by_list(
                Asked(names.CLONE, 1),
                {number: (self._cloned(state, kept),) for number, kept in lists.items()},
            ),
        ]
        nothing = ForgetValues(names.CLONE, of_state=True)
        return [nothing, when(Present(Asked(names.CLONE)), body)]

    def _cloned(self, state: Travelling, kept: Travelling) -> KeepState:
        # The values that the list keeps are those of this moment, like the headers.
        values = (
            variable if variable.name not in self._metadata or variable in kept else ZERO
            for variable in state
        )
        return KeepState(names.CLONE, tuple(values))

    def _egress_end(self) -> Code:
        """Return the end of egress: checksums, the frame, and the packet's remaining requests."""
        spec = self._intrinsic_value("standard_metadata.egress_spec")
        return [
            # Before the drop: BMv2 makes the clone of a packet that egress then drops, too.
            *self._requests_of_egress(),
            when(Compare("==", spec, DropPort()), [ReturnEgress(is_dropped=True)]),
            *self._checksums.update(),
            self._deparser.frame(),
            *self._deparser.emits(),
            *(self._truncated() if self._uses("truncate") else []),
            ReturnEgress(is_dropped=False),
        ]

    def _truncated(self) -> Code:
        return [when(Compare("<", CUTOFF, FrameLength()), [CutFrame(CUTOFF)])]

    def _requests_of_egress(self) -> Code:
        requested = self._egress_requests()
        if not any(requested.values()):
            return [AskNothing()]

        again = names.RECIRCULATE
        code: Code = []
        if requested[again]:
            code = [ForgetValues(again), when(Present(Asked(again)), self._capture(again))]

        requests = ((name, used, name == names.CLONE) for name, used in requested.items())
        return [*code, AskAll(tuple(requests), _any_asked(requested))]


def _any_asked(requested: Mapping[str, bool]) -> Expression:
    asked = [Present(Asked(name)) for name, used in requested.items() if used]
    return asked[0] if len(asked) == 1 else Logic("or", tuple(asked))


def _by_list(number: Expression, bodies: Mapping[int, Statements]) -> Code:
    """Return the choice of a list's code by the list's number."""
    arms = tuple((Compare("==", number, Number(key)), body) for key, body in bodies.items())
    return [If(arms)] if arms else []


def _function(name: str, arguments: Sequence[str], body: Statements) -> list[str]:
    return [f"def {name}({', '.join(arguments)}):", *indented(lines(body))]
