"""Names and their declarations, and the checker's place in the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NoReturn

from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.diagnostics import CompileError, CompileWarning, Span


@dataclass(frozen=True, slots=True, eq=False)
class TypeName:
    type: ty.Type


TypeArgs = tuple[ty.Type, ...]


@dataclass(frozen=True, slots=True, eq=False)
class GenericStruct:
    """A struct with type parameters; `make` types its fields in the scope that declares it."""

    node: nd.Struct
    make: Callable[[TypeArgs, Span], ty.Struct]
    instances: dict[TypeArgs, ty.Struct] = field(default_factory=dict)

    def instance(self, args: TypeArgs, span: Span) -> ty.Struct:
        """Return the struct for type arguments; the same struct for the same arguments."""
        # Structs compare by identity, so a second `pair<bit<8>>` must not become another type.
        if args not in self.instances:
            self.instances[args] = self.make(args, span)
            self.instances[args].generic = self

        return self.instances[args]

    @property
    def span(self) -> Span:
        """Where it is declared."""
        return self.node.span


@dataclass(frozen=True, slots=True, eq=False)
class GenericFunction:
    """A function with type parameters; `make` checks its body anew for a list of arguments."""

    signature: ty.Signature
    make: Callable[[TypeArgs], td.Function]
    instances: dict[TypeArgs, td.Function] = field(default_factory=dict)

    def instance(self, args: TypeArgs) -> td.Function:
        """Return the function for type arguments, checked once for the same arguments."""
        if args not in self.instances:
            self.instances[args] = self.make(args)

        return self.instances[args]


@dataclass(frozen=True, slots=True, eq=False)
class Overloads:
    """Extern functions of one name."""

    signatures: list[ty.Signature]


@dataclass(frozen=True, slots=True, eq=False)
class ConstantName:
    value: ty.Expression


Symbol = (
    TypeName
    | GenericStruct
    | GenericFunction
    | Overloads
    | ConstantName
    | ty.ExternDefinition
    | ty.BlockDefinition
    | ty.Parameter
    | td.Variable
    | td.ValueSet
    | td.Function
    | td.Action
    | td.Instance
    | td.Table
    | td.Control
    | td.ParserBlock
)


@dataclass(slots=True, eq=False)
class Scope:
    """A level of names; inner levels hide outer ones."""

    parent: Scope | None = None
    symbols: dict[str, Symbol] = field(default_factory=dict)

    def find(self, name: str) -> Symbol | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.symbols:
                return scope.symbols[name]

            scope = scope.parent

        return None

    def names(self, *kinds: type) -> Iterator[str]:
        """Yield the names that are known here, of some kinds of symbols or of all."""
        scope: Scope | None = self
        while scope is not None:
            for name, symbol in scope.symbols.items():
                if not kinds or isinstance(symbol, kinds):
                    yield name

            scope = scope.parent

    def root(self) -> Scope:
        return self.parent.root() if self.parent else self

    def declare(self, name: str, symbol: Symbol, span: Span) -> None:
        """Add a name; raises CompileError if this level has it."""
        # Hiding a name of an outer level is allowed ("Name resolution"), two at one level are not.
        if name in self.symbols:
            raise CompileError(f"'{name}' is already declared here", span)

        self.symbols[name] = symbol


@dataclass(slots=True, eq=False)
class Globals:
    """State of the program as a whole."""

    # In the order of declaration; `check_program` puts those of core.p4 first.
    errors: list[str] = field(default_factory=list)
    match_kinds: list[str] = field(default_factory=list)
    instances: list[td.Instance] = field(default_factory=list)
    headers: list[ty.Struct] = field(default_factory=list)
    enums: list[ty.Enum] = field(default_factory=list)
    spans: dict[ty.Struct, Span] = field(default_factory=dict)
    main: td.Instance | None = None
    warnings: list[CompileWarning] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Where the checker is.

    `place` is `top`, `control`, `parser`, `action`, `function`, `table` or `key`. `checker` types
    expressions. It is passed in because everything needs it and it needs everything: an expression
    holds types (casts) and calls, a type holds expressions (`bit<W + 1>`).
    """

    scope: Scope
    globals: Globals
    checker: Callable[[n.Expression, Context], ty.Expression]
    place: str = "top"
    returns: ty.Type = ty.VOID
    in_loop: bool = False
    # Instances that `C.apply()` makes; inner scopes add to the list of their block.
    direct_applications: list[td.Instance] | None = None

    def nested(self, **changes: object) -> Context:
        """Return the context of an inner scope."""
        return replace(self, scope=Scope(self.scope), **changes)  # type: ignore[arg-type]

    def check(self, node: n.Expression) -> ty.Expression:
        """Type an expression here; see `expressions.check`."""
        return self.checker(node, self)


def fail(message: str, span: Span) -> NoReturn:
    """Raise a CompileError."""
    raise CompileError(message, span)
