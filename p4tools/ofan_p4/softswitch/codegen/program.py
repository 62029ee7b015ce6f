"""A BMv2 JSON as frozen data, the input of the code generators.

Expressions, parser operations and primitive calls stay JSON; the generators translate them where
they stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ofan_p4.softswitch.base.crcs import PARAMETERS
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.nodes import Bytes, Local

T = TypeVar("T")
Json = Any

# p4c's name for the validity of a header in the place of a field.
VALID = "$valid$"

# In place of the number of an action, where an entry names none or the id of a member or group.
NO_ACTION = -1
USE_MEMBER = -2
USE_GROUP = -3


@dataclass(frozen=True, slots=True)
class Field:
    """One field of one header instance; a varbit has 0 bits and `most` bytes (0: no limit)."""

    header: int
    index: int
    name: str
    bits: int
    is_signed: bool
    is_varbit: bool
    most: int = 0

    @property
    def var(self) -> Local | Bytes:
        """The variable that holds it in generated code."""
        # The name is made of numbers, never of the file's text, which must not become code.
        name = names.field(self.header, self.index)
        if self.is_varbit:
            return Bytes(name, None, self.most)

        return Local(name, self.bits, self.is_signed, is_state=True)


@dataclass(frozen=True, slots=True)
class Header:
    """One header instance (or metadata struct)."""

    id: int
    name: str
    type_name: str
    is_metadata: bool
    fields: tuple[Field, ...]
    max_bytes: int

    @property
    def valid(self) -> Local:
        """The variable that holds 1 while the header is valid, else 0."""
        return Local(names.valid(self.id), 1, is_state=True)

    @property
    def raw(self) -> Bytes:
        """The variable that holds its bytes while nothing modifies them."""
        return Bytes(names.raw(self.id), self.bytes)

    @property
    def is_variable(self) -> bool:
        """Whether one field is a varbit."""
        return any(field.is_varbit for field in self.fields)

    @property
    def bytes(self) -> int:
        """The length of the fixed part."""
        return sum(field.bits for field in self.fields) // 8


@dataclass(frozen=True, slots=True)
class Stack:
    """A header stack (elements are header ids) or a stack of unions (elements are union ids)."""

    id: int
    name: str
    elements: tuple[int, ...]
    of_unions: bool

    @property
    def next(self) -> Local:
        """The variable that holds the index of the next element to extract."""
        return Local(names.next_element(self.id, self.of_unions), 32, is_state=True)


@dataclass(frozen=True, slots=True)
class Union:
    """A header union: at most one member header is valid."""

    id: int
    name: str
    members: tuple[int, ...]
    member_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParseState:
    """One parser state, its operations and transitions still as JSON.

    `where` is `file:line`, as everywhere here.
    """

    name: str
    ops: tuple[Json, ...]
    key: tuple[Json, ...]
    transitions: tuple[Json, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class Parser:
    """The parser graph."""

    start: str
    states: Mapping[str, ParseState]


@dataclass(frozen=True, slots=True)
class Action:
    """An action: widths of its run-time parameters and its primitive calls."""

    id: int
    name: str
    parameter_names: tuple[str, ...]
    parameter_bits: tuple[int, ...]
    primitives: tuple[Json, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class KeyField:
    """One field of a table key. `kind` is exact, lpm, ternary, range or optional."""

    name: str
    kind: str
    target: Json
    bits: int
    mask: int | None


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A match-action table as declared."""

    id: int
    name: str
    profile: str | None
    size: int
    with_counters: bool
    supports_timeout: bool
    direct_meter: str | None
    key: tuple[KeyField, ...]
    actions: tuple[int, ...]
    next_by_action: Mapping[int, str | None]
    next_hit: str | None
    next_miss: str | None
    splits_on_hit: bool
    default_action: int | None
    default_data: tuple[int, ...]
    is_default_const: bool
    entries: tuple[Json, ...]
    where: str = ""

    @property
    def is_hidden(self) -> bool:
        """Whether the compiler made it to run one statement.

        Tables of the program have a control in their name.
        """
        # p4c names such tables tbl_...; names of the source have their control before a dot.
        return not self.key and "." not in self.name


@dataclass(frozen=True, slots=True)
class Conditional:
    """A two-way branch of a pipeline."""

    name: str
    expression: Json
    on_true: str | None
    on_false: str | None
    where: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class ActionCall:
    """A direct call of an action from a pipeline."""

    name: str
    action: int
    next: str | None


Node = TableSpec | Conditional | ActionCall


@dataclass(frozen=True, slots=True)
class Profile:
    """An action profile; with a selector, the algorithm and the fields that choose a member."""

    id: int
    name: str
    size: int
    algorithm: str | None
    inputs: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Control:
    """One pipeline: a graph of tables, conditions and action calls."""

    name: str
    start: str | None
    nodes: Mapping[str, Node]
    profiles: tuple[Profile, ...]


@dataclass(frozen=True, slots=True)
class Calculation:
    """A named hash over a list of inputs."""

    name: str
    algorithm: str
    inputs: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Checksum:
    """A checksum field, verified after the parser and/or updated before the deparser."""

    target: Field
    calculation: str
    condition: Json
    verify: bool
    update: bool
    where: str = ""


@dataclass(frozen=True, slots=True)
class Array:
    """A register, counter or meter array. `kind` of a meter is packets or bytes."""

    id: int
    name: str
    size: int
    bits: int = 0
    is_direct: bool = False
    kind: str = ""
    result: Field | None = None


# A counter of ours behind those of the program. It counts accesses beyond an array's end, which
# BMv2 ignores, so that nothing else shows them: cells for writes of each register, for reads of
# each register, for each counter and for each meter.
STRAYS = "$strays"


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A parser value set."""

    id: int
    name: str
    bits: int


@dataclass(frozen=True, slots=True)
class FieldList:
    """Fields that survive a clone, resubmit or recirculation, or that a digest carries."""

    id: int
    name: str
    elements: tuple[Json, ...]


def lookup_kind(spec: TableSpec) -> str:
    """Return exact, lpm, masked or rows: which structure the table is searched by."""
    kinds = [key.kind for key in spec.key]
    if all(kind == "exact" for kind in kinds):
        return "exact"
    if kinds.count("lpm") == 1 and all(kind in ("exact", "lpm") for kind in kinds):
        return "lpm"

    # A range has no mask.
    return "rows" if "range" in kinds else "masked"


@dataclass(frozen=True, slots=True)
class Program:
    """The whole BMv2 JSON."""

    headers: tuple[Header, ...]
    header_ids: Mapping[str, int]
    stacks: Mapping[str, Stack]
    unions: tuple[Union, ...]
    union_ids: Mapping[str, int]
    union_stacks: Mapping[str, Stack]
    errors: Mapping[str, int]
    parser: Parser
    deparse_order: tuple[int, ...]
    actions: Mapping[int, Action]
    ingress: Control
    egress: Control
    calculations: Mapping[str, Calculation]
    checksums: tuple[Checksum, ...]
    registers: tuple[Array, ...]
    counters: tuple[Array, ...]
    meters: tuple[Array, ...]
    value_sets: tuple[ValueSet, ...]
    field_lists: Mapping[int, FieldList]
    learn_lists: Mapping[int, FieldList]
    aliases: Mapping[str, tuple[str, str]]

    @property
    def stray_reads(self) -> int:
        """The first cell of STRAYS for reads; its number is also that of cells for writes."""
        return len(self.registers)

    @property
    def stray_counts(self) -> int:
        """The first cell of STRAYS for counters."""
        return 2 * len(self.registers)

    @property
    def stray_colors(self) -> int:
        """The first cell of STRAYS for meters."""
        # The last counter is STRAYS itself.
        return self.stray_counts + len(self.counters) - 1

    def field(self, header: str, name: str) -> Field:
        """Return a field by the file's names."""
        matching = next((f for f in self.header(header).fields if f.name == name), None)
        if matching is None:
            raise PipelineError(f"header {header!r} has no field {name!r}")

        return matching

    def header(self, name: str) -> Header:
        """Return a header by the file's name."""
        if name not in self.header_ids:
            raise PipelineError(f"no header is called {name!r}")

        return self.headers[self.header_ids[name]]

    def intrinsic(self, name: str) -> Field | None:
        """Return the field behind `standard_metadata.x` or an alias of it, if there."""
        header, _, field = name.partition(".")
        # BMv2 looks fields of v1model up by P4_14's names; aliases lead to standard_metadata.
        header, field = self.aliases.get(name, (header, field))
        if header not in self.header_ids:
            return None

        return next((f for f in self.header(header).fields if f.name == field), None)

    def union_of(self, header: int) -> Union | None:
        """Return the union that a header belongs to."""
        return next((union for union in self.unions if header in union.members), None)

    def custom_crcs(self) -> tuple[Calculation, ...]:
        """Return the calculations by CRCs with parameters from the control plane."""
        return tuple(item for item in self.calculations.values() if item.algorithm in PARAMETERS)

    def profiles(self) -> tuple[Profile, ...]:
        """Return the action profiles of both pipelines."""
        return self.ingress.profiles + self.egress.profiles

    def tables(self) -> tuple[TableSpec, ...]:
        """Return the tables of both pipelines."""
        nodes = (*self.ingress.nodes.values(), *self.egress.nodes.values())
        return tuple(node for node in nodes if isinstance(node, TableSpec))


def where_of(item: Json) -> str:
    """Return `file:line` of something in the JSON, empty where the compiler did not say."""
    info = item.get("source_info") if isinstance(item, dict) else None
    return (
        f"{info.get('filename')}:{info.get('line')}"
        if isinstance(info, dict) and info.get("filename")
        else ""
    )


def fragment_of(item: Json) -> str:
    """Return the source text behind something in the JSON, empty where it does not say."""
    info = item.get("source_info") if isinstance(item, dict) else None
    return (
        " ".join(str(info.get("source_fragment") or "").split()) if isinstance(info, dict) else ""
    )


def hex_int(text: Json, where: str) -> int:
    """Return the value of a `hexstr`, which may carry a sign."""
    try:
        return int(text, 16)
    except (TypeError, ValueError):
        raise PipelineError(f"{where}: expected a hexadecimal string, found {text!r}") from None


def natural(value: Json, noun: str) -> int:
    """Return a number that the file counts with: an integer from 0 up."""
    if type(value) is not int or value < 0:
        raise PipelineError(f"corrupt BMv2 JSON: {noun} is {value!r}")

    return value


def item_at(items: Sequence[T], index: Json, noun: str) -> T:
    """Return the item that the file names by its position."""
    # Python would count -1 from the end, and generated code would name something else than meant.
    if natural(index, noun) >= len(items):
        raise PipelineError(f"corrupt BMv2 JSON: {noun} is {index}, of {len(items)}")

    return items[index]
