"""The two functions that a program becomes: `ingress` and `egress`.

    ingress(data, port, length, now, resume)
        -> (egress_spec, mcast_grp, priority, change of length, special or None, state)
    egress(state, port, priority, length, instance, rid, now, enq_us, enq_depth, delta_us, deq_depth)
        -> (frame or None, special or None)

`state` is a tuple of the variables that egress needs. `special` holds what clone, digest, resubmit
and recirculate asked for: ingress (clone, values, digest, values, resubmit, values), egress (clone,
state of the clone, recirculate, values). `resume` is None for a fresh packet, else (instance type,
field list, values); a clone leaves ingress after the parser.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from emulation.softswitch.codegen.constants import Constants
from emulation.softswitch.codegen.controls import ControlCode
from emulation.softswitch.codegen.expressions import Expressions, Value, cut
from emulation.softswitch.codegen.flow import Lines, indent
from emulation.softswitch.codegen.hashing import hash_value, parts_of
from emulation.softswitch.codegen.layout import Chunk, pack_format
from emulation.softswitch.codegen.liveness import Liveness, names, raw
from emulation.softswitch.codegen.parsing import ParserCode
from emulation.softswitch.codegen.primitives import Primitives
from emulation.softswitch.codegen.program import Checksum, FieldList, Header, Program
from emulation.softswitch.codegen.tracing import Label, Tracing

INSTANCE_INGRESS_CLONE = 1
NO_CUTOFF = 1 << 30

INGRESS = "def ingress(data, port, length, now, resume):"
EGRESS = "def egress(state, port, priority, length, instance, rid, now, enq_us, enq_depth, delta_us, deq_depth):"

OUTCOME = (
    "standard_metadata.egress_spec",
    "intrinsic_metadata.mcast_grp",
    "intrinsic_metadata.priority",
)
INGRESS_METADATA = {
    "standard_metadata.ingress_port": "port",
    "standard_metadata.packet_length": "length",
    "intrinsic_metadata.ingress_global_timestamp": "now // 1000000",
}
EGRESS_METADATA = {
    "standard_metadata.egress_port": "port",
    "standard_metadata.packet_length": "length",
    "standard_metadata.instance_type": "instance",
    "intrinsic_metadata.egress_rid": "rid",
    "intrinsic_metadata.egress_global_timestamp": "now // 1000000",
    "queueing_metadata.enq_timestamp": "enq_us",
    "queueing_metadata.enq_qdepth": "enq_depth",
    "queueing_metadata.deq_timedelta": "delta_us",
    "queueing_metadata.deq_qdepth": "deq_depth",
    "queueing_metadata.qid": "priority",
    "intrinsic_metadata.priority": "priority",
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
        self._expressions = Expressions(program)
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

    def bodies(self) -> tuple[Lines, Lines, list[str]]:
        """Return the statements of both functions and the variables that ingress hands to egress."""
        start = self._ingress_start()
        parser = self._parser.lines()
        rest = self._ingress_rest()
        egress = self._egress_pipeline()
        deparser = self._deparser()
        loads, _ = names([*egress, *deparser])
        _, stores = names([*start, *parser, *rest])
        state = sorted(loads & stores)
        ingress = [*start, *parser, *self._leave_clone(state), *rest, *self._ingress_end(state)]

        return ingress, [*egress, *self._egress_clone(state), *deparser], state

    def source(self) -> str:
        """Return the text of both functions."""
        ingress, egress, state = self.bodies()
        ingress = [*self._initial(ingress), *ingress]
        egress = [
            f"{', '.join(['data, o', *state])} = state",
            *self._initial(egress, state),
            *egress,
        ]

        return "\n".join([INGRESS, *indent(ingress), EGRESS, *indent(egress), ""])

    def _initial(self, body: Lines, known: Iterable[str] = ()) -> Lines:
        """Return what gives every variable that the body loads its first value."""
        loads, _ = names(body)
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
        values = {"cutoff": str(NO_CUTOFF)}
        for header in self._program.headers:
            values[raw(header)] = 'b""'
            values.update({field.var: 'b""' for field in header.fields if field.is_varbit})
            for chunk in self.liveness.plan(header):
                values.update(zip(chunk.variables(), chunk.zeros(), strict=True))

        return values

    def _set_metadata(self, values: Mapping[str, str]) -> Lines:
        """Return assignments to those intrinsic fields that the program has and uses."""
        fields = {name: self._program.intrinsic(name) for name in values}
        return [
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
            *self._set_metadata({"standard_metadata.instance_type": "resume[0]"}),
        ]

        return [
            "n = len(data)",
            "d = x = 0",
            *self._set_metadata(INGRESS_METADATA),
            *(["if resume is not None:", *indent(again)] if again else []),
        ]

    def _restore(self) -> Lines:
        """Return what gives the fields of the preserved list back their values."""
        arms: Lines = []
        for number, field_list in self._program.field_lists.items():
            targets = self._list_fields(field_list)
            if targets:
                arms += [
                    f"{'elif' if arms else 'if'} resume[1] == {number}:",
                    f" {', '.join(targets)}, = resume[2]",
                ]

        return arms

    def _list_fields(self, field_list: FieldList) -> list[str]:
        return [
            self._program.field(*item["value"]).var
            for item in field_list.elements
            if item.get("type") == "field"
        ]

    def _leave_clone(self, state: Sequence[str]) -> Lines:
        """Return the way out for an ingress-to-egress clone: parsed, its metadata cleared but for
        its field list.
        """
        if not self._uses("clone_ingress_pkt_to_egress"):
            return []

        metadata = [name for name in state if self._is_metadata(name)]
        cleared = [f"{' = '.join(metadata)} = 0"] if metadata else []
        body = [
            *cleared,
            *self._restore(),
            f"return 0, 0, 0, 0, None, {_tuple(['data', 'o', *state])}",
        ]

        return [f"if resume is not None and resume[0] == {INSTANCE_INGRESS_CLONE}:", *indent(body)]

    def _is_metadata(self, name: str) -> bool:
        return name[0] == "f" and self._program.headers[int(name[1:].partition("_")[0])].is_metadata

    def _ingress_rest(self) -> Lines:
        """Return what follows the parser: checks and the ingress pipeline."""
        pipeline = self._controls.lines(self._program.ingress)
        flags = [f"{name} = None" for name, used in self._ingress_requests().items() if used]
        return [
            *self._set_metadata({"standard_metadata.parser_error": "perr"}),
            *self._verify(),
            *flags,
            *pipeline,
        ]

    def _verify(self) -> Lines:
        error = self._program.intrinsic("standard_metadata.checksum_error")
        if error is None or not self.liveness.is_live(error):
            return []

        lines: Lines = []
        for checksum in self._program.checksums:
            if checksum.verify:
                wrong = f"{self._checksum(checksum).source} != {checksum.target.var}"
                told = self._told("checksum_wrong", checksum)
                lines += [
                    f"if {self._condition(checksum)} and {wrong}:",
                    *indent([f"{error.var} = 1", *told]),
                ]

        return lines

    def _told(self, kind: str, checksum: Checksum) -> Lines:
        """Report a checksum field; what a wrong one should have been is computed again."""
        values = [(Label("value", checksum.target.bits), checksum.target.var)]
        if kind == "checksum_wrong":
            values.append(
                (Label("expected", checksum.target.bits), self._checksum(checksum).source)
            )

        return self._tracing.at(
            kind, self._tracing.name_of(checksum.target), values, where=checksum.where
        )

    def _checksum(self, checksum: Checksum) -> Value:
        calculation = self._program.calculations[checksum.calculation]
        parts = parts_of(
            self._program,
            calculation.inputs,
            known=self._program.headers[checksum.target.header].valid,
        )

        return hash_value(self.constants, calculation.algorithm, parts)

    def _condition(self, checksum: Checksum) -> str:
        """Return when a checksum counts: its header is there, and what the program asks for
        besides.
        """
        valid = self._program.headers[checksum.target.header].valid
        asked = (
            "True" if checksum.condition is None else self._expressions.boolean(checksum.condition)
        )
        return valid if asked in ("True", f"({valid} != 0)") else f"{valid} and {asked}"

    def _ingress_requests(self) -> dict[str, bool]:
        return {
            "cl": self._uses("clone_ingress_pkt_to_egress"),
            "dg": self._uses("generate_digest"),
            "rs": self._uses("resubmit"),
        }

    def _ingress_end(self, state: Sequence[str]) -> Lines:
        outcome = [self._intrinsic_source(name) for name in OUTCOME]
        return [
            *self._special(),
            f"return {', '.join(outcome)}, d, sp, {_tuple(['data', 'o', *state])}",
        ]

    def _intrinsic_source(self, name: str) -> str:
        field = self._program.intrinsic(name)
        return "0" if field is None else field.var

    def _special(self) -> Lines:
        """Return what packs the packet's requests to the replication engine into `sp`."""
        wanted = self._ingress_requests()
        if not any(wanted.values()):
            return ["sp = None"]

        parts: list[str] = []
        lines: Lines = []
        for name, used in wanted.items():
            parts += [name, f"{name}v"] if used else ["None", "()"]
            if used:
                lines += [f"{name}v = ()", f"if {name} is not None:", *indent(self._capture(name))]

        flags = " or ".join(f"{name} is not None" for name, used in wanted.items() if used)
        return ["sp = None", f"if {flags}:", *indent([*lines, f"sp = {_tuple(parts)}"])]

    def _capture(self, name: str) -> Lines:
        """Return what puts the values of the requested list into `<name>v`."""
        lists = self._program.learn_lists if name == "dg" else self._program.field_lists
        number = "cl[1]" if name == "cl" else name
        arms: Lines = []

        for key, item in lists.items():
            sources = self._list_fields(item) if name != "dg" else self._digest_values(item)
            arms += [
                f"{'elif' if arms else 'if'} {number} == {key}:",
                f" {name}v = {_tuple(sources)}",
            ]

        return arms or ["pass"]

    def _digest_values(self, item: FieldList) -> list[str]:
        parts = [part for element in item.elements for part in parts_of(self._program, [element])]
        return [part.source for part in parts]

    def _egress_pipeline(self) -> Lines:
        pipeline = self._controls.lines(self._program.egress)
        flags = [f"{name} = None" for name, used in self._egress_requests().items() if used]
        return [
            "d = x = 0",
            *self._set_metadata(EGRESS_METADATA),
            *self._clear_spec(),
            *flags,
            *pipeline,
        ]

    def _egress_requests(self) -> dict[str, bool]:
        return {"cl": self._uses("clone_egress_pkt_to_egress"), "rc": self._uses("recirculate")}

    def _clear_spec(self) -> Lines:
        spec = self._program.intrinsic("standard_metadata.egress_spec")
        return [f"{spec.var} = 0"] if spec is not None else []

    def _egress_clone(self, state: Sequence[str]) -> Lines:
        """Return what builds the state of an egress-to-egress clone: headers as they are, metadata
        from its list.
        """
        if not self._uses("clone_egress_pkt_to_egress"):
            return []

        lists = {
            number: self._list_fields(item) for number, item in self._program.field_lists.items()
        }
        arms: Lines = []
        for number, kept in lists.items():
            arms += [
                f"{'elif' if arms else 'if'} cl[1] == {number}:",
                f" clv = {self._cloned(state, kept)}",
            ]

        body = [f"clv = {self._cloned(state, ())}", *arms]
        return ["clv = None", "if cl is not None:", *indent(body)]

    def _cloned(self, state: Sequence[str], kept: Sequence[str]) -> str:
        values = [name if not self._is_metadata(name) or name in kept else "0" for name in state]
        return _tuple(["data", "o", *values])

    def _deparser(self) -> Lines:
        """Return the end of egress: checksums, the frame, and the request to send it round again."""
        requests = self._egress_requests()
        recirculated = (
            ["rcv = ()", "if rc is not None:", *indent(self._capture("rc"))]
            if requests["rc"]
            else []
        )

        clone = ("cl", "clv") if requests["cl"] else ("None", "None")
        again = ("rc", "rcv") if requests["rc"] else ("None", "()")
        special = _tuple([*clone, *again])
        flags = (
            " or ".join(f"{name} is not None" for name, used in requests.items() if used) or "False"
        )
        spec = self._intrinsic_source("standard_metadata.egress_spec")

        return [
            *recirculated,
            f"sp = {special} if {flags} else None" if any(requests.values()) else "sp = None",
            f"if {spec} == DROP:",
            " return None, sp",
            *self._update(),
            f"frame = {self._frame()}",
            *self._emits(),
            *(
                ["if cutoff < len(frame):", " frame = frame[:cutoff]"]
                if self._uses("truncate")
                else []
            ),
            "return frame, sp",
        ]

    def _update(self) -> Lines:
        lines: Lines = []
        for checksum in self._program.checksums:
            if checksum.update:
                store = f"{checksum.target.var} = {cut(checksum.target, self._checksum(checksum))}"
                lines += [
                    f"if {self._condition(checksum)}:",
                    *indent([store, *self._told("checksum_updated", checksum)]),
                ]

        return lines

    def _emits(self) -> Lines:
        """Report which headers the deparser has emitted, and the bytes that follow them."""
        headers = [self._program.headers[i] for i in self._program.deparse_order]
        values = [(Label(header.name, 1), header.valid) for header in headers]
        return self._tracing.at(
            "emit", "deparser", [*values, (Label("payload", 32), "len(data) - o")], where=""
        )

    def _frame(self) -> str:
        headers = [self._program.headers[i] for i in self._program.deparse_order]
        pieces = [piece for header in headers for piece in self._emitted(header)]
        return f'b"".join({_tuple([*pieces, "data[o:]"])})'

    def _emitted(self, header: Header) -> list[str]:
        if self.liveness.is_pristine(header):
            return [raw(header)]

        pieces: list[str] = []
        run: list[Chunk] = []
        for chunk in self.liveness.plan(header):
            if chunk.is_varbit:
                pieces += [*self._packed(run), chunk.var]
                run = []
            else:
                run.append(chunk)

        return [f'({piece} if {header.valid} else b"")' for piece in (*pieces, *self._packed(run))]

    def _packed(self, run: Sequence[Chunk]) -> list[str]:
        if not run:
            return []
        if len(run) == 1 and run[0].is_opaque:
            return [run[0].var]

        pack = self.constants.add(struct.Struct(pack_format(run)).pack)
        return [f"{pack}({', '.join(chunk.packed() for chunk in run)})"]


def _tuple(sources: Sequence[str]) -> str:
    return f"({''.join(source + ', ' for source in sources)})"
