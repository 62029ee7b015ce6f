"""The two functions that a program becomes: `ingress` and `egress`.

    ingress(data, port, length, now, resume)
        -> (egress_spec, mcast_grp, priority, change of length, IngressRequests or None, state)
    egress(state, port, priority, length, instance, rid, now,
           enq_us, enq_depth, delta_us, deq_depth)
        -> (frame or None, EgressRequests or None)

`names` says what the arguments are, `emulation.softswitch.requests` what is in the requests and in
`resume`. `state` is a tuple of the variables that egress needs. A clone leaves ingress after the
parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.checksums import ChecksumCode
from emulation.softswitch.codegen.constants import Constants
from emulation.softswitch.codegen.controls import ControlCode
from emulation.softswitch.codegen.deparsing import DeparserCode
from emulation.softswitch.codegen.expressions import Value, cut
from emulation.softswitch.codegen.flow import Lines, indent, tuple_of
from emulation.softswitch.codegen.hashing import parts_of
from emulation.softswitch.codegen.liveness import Liveness, state_used
from emulation.softswitch.codegen.parsing import ParserCode
from emulation.softswitch.codegen.primitives import Primitives
from emulation.softswitch.codegen.program import FieldList, Program
from emulation.softswitch.codegen.tracing import Tracing
from emulation.softswitch.requests import INGRESS_CLONE
from emulation.softswitch.units import PS_PER_US

# More bytes than any frame has, so that `min` works before the first truncate.
NO_CUTOFF = 1 << 30
# Timestamps of v1model are microseconds since the switch started.
US = f"{names.NOW} // {PS_PER_US}"

INGRESS_ARGUMENTS = (names.DATA, names.PORT, names.PACKET_LENGTH, names.NOW, names.RESUME)
EGRESS_ARGUMENTS = (
    names.STATE,
    names.PORT,
    names.PRIORITY,
    names.PACKET_LENGTH,
    names.INSTANCE,
    names.RID,
    names.NOW,
    names.ENQ_US,
    names.ENQ_DEPTH,
    names.DELTA_US,
    names.DEQ_DEPTH,
)

# What ingress decides for the switch, in the order in which it returns it.
OUTCOME = (
    "standard_metadata.egress_spec",
    "intrinsic_metadata.mcast_grp",
    "intrinsic_metadata.priority",
)
INGRESS_METADATA = {
    "standard_metadata.ingress_port": names.PORT,
    "standard_metadata.packet_length": names.PACKET_LENGTH,
    "intrinsic_metadata.ingress_global_timestamp": US,
}
EGRESS_METADATA = {
    "standard_metadata.egress_port": names.PORT,
    "standard_metadata.packet_length": names.PACKET_LENGTH,
    "standard_metadata.instance_type": names.INSTANCE,
    "intrinsic_metadata.egress_rid": names.RID,
    "intrinsic_metadata.egress_global_timestamp": US,
    "queueing_metadata.enq_timestamp": names.ENQ_US,
    "queueing_metadata.enq_qdepth": names.ENQ_DEPTH,
    "queueing_metadata.deq_timedelta": names.DELTA_US,
    "queueing_metadata.deq_qdepth": names.DEQ_DEPTH,
    "queueing_metadata.qid": names.PRIORITY,
    "intrinsic_metadata.priority": names.PRIORITY,
}


@dataclass(frozen=True, slots=True)
class Assembly:
    """The generated module and the objects its names stand for."""

    source: str
    constants: Mapping[str, object]


def assemble(program: Program, is_traced: bool = False) -> Assembly:
    """Generate the code of a program, once to learn what it uses and once for good.

    Traced code tells every step.
    """
    # Only the finished text shows what a program uses: which fields somebody reads, which headers
    # nobody modifies. The second text comes from the same generators, so that it does the same with
    # less.
    first = _Assembler(program, Liveness(program), is_traced)
    ingress, egress, _ = first.bodies()
    second = _Assembler(program, first.liveness.learn([*ingress, *egress]), is_traced)

    return Assembly(second.source(), second.constants.values)


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

    def bodies(self) -> tuple[Lines, Lines, list[str]]:
        """Return the statements of both functions and the variables handed to egress."""
        # `Primitives.used` fills while the pipelines are generated: what depends on it (the
        # requests, the way out for clones) comes after them.
        start = self._ingress_start()
        parser = self._parser.lines()
        rest = self._ingress_rest()
        egress = self._egress_pipeline()
        end = self._egress_end()
        loads, _ = state_used([*egress, *end])
        _, stores = state_used([*start, *parser, *rest])
        # What egress does not read need not travel, and what ingress has not touched still has its
        # first value. Sorted, so that the same program always becomes the same text.
        state = sorted(loads & stores)
        ingress = [*start, *parser, *self._leave_clone(state), *rest, *self._ingress_end(state)]

        return ingress, [*egress, *self._egress_clone(state), *end], state

    def source(self) -> str:
        """Return the text of both functions."""
        ingress, egress, state = self.bodies()
        ingress = [*self._initial(ingress), *ingress]
        egress = [
            f"{', '.join([names.DATA, names.POSITION, *state])} = {names.STATE}",
            *self._initial(egress, state),
            *egress,
        ]

        lines = [
            *_function("ingress", INGRESS_ARGUMENTS, ingress),
            *_function("egress", EGRESS_ARGUMENTS, egress),
        ]
        return "\n".join([*lines, ""])

    def _initial(self, body: Lines, known: Iterable[str] = ()) -> Lines:
        """Return what gives every variable that the body loads its first value."""
        # Python refuses to load a local variable before its first store, but a program may read a
        # field that nothing has set: metadata starts at 0 in BMv2, and here every field does.
        loads, _ = state_used(body)
        defaults = self._defaults()
        zeros = []
        others = []

        for name in sorted(loads.difference(known)):
            if defaults.get(name, "0") == "0":
                zeros.append(name)
            else:
                others.append(f"{name} = {defaults[name]}")

        return [*([f"{' = '.join(zeros)} = 0"] if zeros else []), *others]

    def _defaults(self) -> dict[str, str]:
        """Return the first values of variables that do not start at 0."""
        values = {names.CUTOFF: str(NO_CUTOFF)}
        for header in self._program.headers:
            values[header.raw] = 'b""'
            values.update({field.var: 'b""' for field in header.fields if field.is_varbit})
            for chunk in self.liveness.plan(header):
                values.update(zip(chunk.variables(), chunk.zeros(), strict=True))

        return values

    def _set_metadata(self, values: Mapping[str, str]) -> Lines:
        """Return assignments to those intrinsic fields that the program has and uses."""
        fields = {name: self._program.intrinsic(name) for name in values}
        return [
            # The switch hands over plain integers of any size; a field has its width.
            f"{field.var} = {cut(field, Value(values[name], None))}"
            for name, field in fields.items()
            if field is not None and self.liveness.is_live(field)
        ]

    def _uses(self, *primitives: str) -> bool:
        return any(name in self._primitives.used for name in primitives)

    def _ingress_start(self) -> Lines:
        """Set the metadata of a fresh packet, or of one that comes round again."""
        again = [
            *self._restore(),
            # Last, because a preserved field list may hold the instance type of the round before.
            *self._set_metadata({"standard_metadata.instance_type": f"{names.RESUME}[0]"}),
        ]

        return [
            f"{names.SIZE} = len({names.DATA})",
            f"{names.GROWTH} = {names.EXITED} = 0",
            *self._set_metadata(INGRESS_METADATA),
            *([f"if {names.RESUME} is not None:", *indent(again)] if again else []),
        ]

    def _restore(self) -> Lines:
        """Return what gives the fields of the preserved list back their values."""
        arms: Lines = []
        for number, field_list in self._program.field_lists.items():
            targets = self._list_fields(field_list)
            if targets:
                arms += [
                    f"{'elif' if arms else 'if'} {names.RESUME}[1] == {number}:",
                    f" {', '.join(targets)}, = {names.RESUME}[2]",
                ]

        return arms

    def _list_fields(self, field_list: FieldList) -> list[str]:
        return [
            self._program.field(*item["value"]).var
            for item in field_list.elements
            if item.get("type") == "field"
        ]

    def _leave_clone(self, state: Sequence[str]) -> Lines:
        """Return the way out for a clone of ingress: parsed, its metadata that of its list."""
        if not self._uses("clone_ingress_pkt_to_egress"):
            return []

        # BMv2 parses a clone of ingress again, to save every other packet the copy of its headers;
        # so do we. Of its metadata only the field list survives.
        metadata = [name for name in state if self._is_metadata(name)]
        cleared = [f"{' = '.join(metadata)} = 0"] if metadata else []
        body = [
            *cleared,
            *self._restore(),
            f"return 0, 0, 0, 0, None, {_state(state)}",
        ]

        # Two tests, since machine code evaluates both sides of `and`, and a None has no parts.
        is_clone = [f"if {names.RESUME}[0] == {INGRESS_CLONE}:", *indent(body)]
        return [f"if {names.RESUME} is not None:", *indent(is_clone)]

    def _is_metadata(self, name: str) -> bool:
        header = names.header_of(name)
        # A header travels with its clone, metadata does not.
        return header is not None and self._program.headers[header].is_metadata

    def _ingress_rest(self) -> Lines:
        """Return what follows the parser: checks and the ingress pipeline."""
        pipeline = self._controls.lines(self._program.ingress)
        # What only egress asks for, as a digest there, is not looked at behind ingress, as in BMv2.
        self._used_by_ingress = frozenset(self._primitives.used)
        flags = [f"{name} = None" for name, used in self._ingress_requests().items() if used]
        return [
            *self._set_metadata({"standard_metadata.parser_error": names.PARSER_ERROR}),
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

    def _ingress_end(self, state: Sequence[str]) -> Lines:
        outcome = [self._intrinsic_source(name) for name in OUTCOME]
        return [
            *self._requests(),
            f"return {', '.join(outcome)}, {names.GROWTH}, {names.REQUESTS}, {_state(state)}",
        ]

    def _intrinsic_source(self, name: str) -> str:
        field = self._program.intrinsic(name)
        return "0" if field is None else field.var

    def _requests(self) -> Lines:
        """Return what puts what the packet asks for into `names.REQUESTS`."""
        wanted = self._ingress_requests()
        if not any(wanted.values()):
            return [f"{names.REQUESTS} = None"]

        parts: list[str] = []
        lines: Lines = []
        for name, used in wanted.items():
            values = names.values_of(name)
            parts += [name, values] if used else ["None", "()"]
            if used:
                lines += [f"{values} = ()", f"if {name} is not None:", *indent(self._capture(name))]

        flags = " or ".join(f"{name} is not None" for name, used in wanted.items() if used)
        # Most packets ask for nothing: one test sends them past all of it.
        packed = [*lines, f"{names.REQUESTS} = {tuple_of(parts)}"]
        return [f"{names.REQUESTS} = None", f"if {flags}:", *indent(packed)]

    def _capture(self, name: str) -> Lines:
        """Return what fetches the values of the list that a request names."""
        lists = self._program.learn_lists if name == names.DIGEST else self._program.field_lists
        number = f"{name}[1]" if name == names.CLONE else name
        arms: Lines = []

        for key, item in lists.items():
            sources = self._list_fields(item) if name != names.DIGEST else self._digest_values(item)
            arms += [
                f"{'elif' if arms else 'if'} {number} == {key}:",
                f" {names.values_of(name)} = {tuple_of(sources)}",
            ]

        return arms or ["pass"]

    def _digest_values(self, item: FieldList) -> list[str]:
        parts = [part for element in item.elements for part in parts_of(self._program, [element])]
        return [part.source for part in parts]

    def _egress_pipeline(self) -> Lines:
        pipeline = self._controls.lines(self._program.egress)
        flags = [f"{name} = None" for name, used in self._egress_requests().items() if used]
        return [
            f"{names.GROWTH} = {names.EXITED} = 0",
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

    def _clear_spec(self) -> Lines:
        # BMv2 clears egress_spec before egress: there it can only be set to drop this very copy,
        # whatever ingress chose.
        spec = self._program.intrinsic("standard_metadata.egress_spec")
        return [f"{spec.var} = 0"] if spec is not None else []

    def _egress_clone(self, state: Sequence[str]) -> Lines:
        """Return what builds the state of a clone of egress: headers as now, metadata by list."""
        if not self._uses("clone_egress_pkt_to_egress"):
            return []

        lists = {
            number: self._list_fields(item) for number, item in self._program.field_lists.items()
        }
        cloned = names.values_of(names.CLONE)
        arms: Lines = []
        for number, kept in lists.items():
            arms += [
                f"{'elif' if arms else 'if'} {names.CLONE}[1] == {number}:",
                f" {cloned} = {self._cloned(state, kept)}",
            ]

        body = [f"{cloned} = {self._cloned(state, ())}", *arms]
        return [f"{cloned} = None", f"if {names.CLONE} is not None:", *indent(body)]

    def _cloned(self, state: Sequence[str], kept: Sequence[str]) -> str:
        # The values that the list keeps are those of this moment, like the headers.
        return _state(
            name if not self._is_metadata(name) or name in kept else "0" for name in state
        )

    def _egress_end(self) -> Lines:
        """Return the end of egress: checksums, the frame, and what the packet still asks for."""
        spec = self._intrinsic_source("standard_metadata.egress_spec")

        return [
            # Before the drop: BMv2 makes the clone of a packet that egress then drops, too.
            *self._requests_of_egress(),
            f"if {spec} == {names.DROP}:",
            f" return None, {names.REQUESTS}",
            *self._checksums.update(),
            f"{names.FRAME} = {self._deparser.frame()}",
            *self._deparser.emits(),
            *(self._truncated() if self._uses("truncate") else []),
            f"return {names.FRAME}, {names.REQUESTS}",
        ]

    def _truncated(self) -> Lines:
        return [
            f"if {names.CUTOFF} < len({names.FRAME}):",
            f" {names.FRAME} = {names.FRAME}[:{names.CUTOFF}]",
        ]

    def _requests_of_egress(self) -> Lines:
        wanted = self._egress_requests()
        if not any(wanted.values()):
            return [f"{names.REQUESTS} = None"]

        lines: Lines = []
        if wanted[names.RECIRCULATE]:
            lines = [
                f"{names.values_of(names.RECIRCULATE)} = ()",
                f"if {names.RECIRCULATE} is not None:",
                *indent(self._capture(names.RECIRCULATE)),
            ]

        parts: list[str] = []
        for name, nothing in ((names.CLONE, "None"), (names.RECIRCULATE, "()")):
            parts += [name, names.values_of(name)] if wanted[name] else ["None", nothing]

        flags = " or ".join(f"{name} is not None" for name, used in wanted.items() if used)
        return [*lines, f"{names.REQUESTS} = {tuple_of(parts)} if {flags} else None"]


def _state(variables: Iterable[str]) -> str:
    return tuple_of([names.DATA, names.POSITION, *variables])


def _function(name: str, arguments: Sequence[str], body: Lines) -> Lines:
    return [f"def {name}({', '.join(arguments)}):", *indent(body)]
