"""A P4Info in progress, and the parts that all its messages share: names, ids, annotations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from p4.config.v1 import p4info_pb2, p4types_pb2

from ofan_p4.compiler.backend.identifiers import Symbols
from ofan_p4.compiler.backend.p4info_annotations import annotate
from ofan_p4.compiler.backend.typespecs import type_spec
from ofan_p4.compiler.midend.flow import Table
from ofan_p4.compiler.midend.switch import Switch
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.syntax.nodes import Annotations


@dataclass(frozen=True)
class Draft:
    """A program and its P4Info so far; `tables` are those that the control plane sees."""

    switch: Switch
    info: p4info_pb2.P4Info
    symbols: Symbols
    tables: list[Table]

    def annotate(self, message: object, annotations: Annotations, skip: Iterable[str] = ()) -> None:
        """Add annotations to a message, but those that have fields of their own there."""
        annotate(message, annotations, self.switch.program.structured, skip)

    def preamble(
        self,
        preamble: p4info_pb2.Preamble,
        kind: str,
        name: str,
        annotations: Annotations,
        skip: Iterable[str] = (),
    ) -> None:
        """Fill in an object's id, name, alias and annotations."""
        preamble.id = self.symbols.id_of(kind, name)
        preamble.name = name
        preamble.alias = self.symbols.aliases[name]
        self.annotate(preamble, annotations, skip)

    def spec(self, type_: ty.Type) -> p4types_pb2.P4DataTypeSpec:
        """Describe a type, and add the named ones that it is made of to the P4Info."""
        return type_spec(type_, self.info.type_info, self.switch.program.errors)

    def name_type(self, type_: ty.Type, message: p4info_pb2.MatchField) -> None:
        """Name the type of a field if it is a `type` declaration, and describe it."""
        spec = self.spec(type_)
        if spec.HasField("new_type"):
            message.type_name.name = spec.new_type.name
