"""The whole program, declaration by declaration."""

from __future__ import annotations

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotation_rules import check_annotations
from ofan_p4.compiler.semantics.annotations import unknown_annotations
from ofan_p4.compiler.semantics.declarations.blocks import (
    check_control,
    check_instance,
    check_parser,
)
from ofan_p4.compiler.semantics.declarations.functions import check_action, declare_function
from ofan_p4.compiler.semantics.declarations.named_types import (
    check_enum,
    check_typedef,
    declare_names,
    declare_struct,
)
from ofan_p4.compiler.semantics.declarations.signatures import (
    check_block_type,
    check_extern,
    declare_extern_function,
)
from ofan_p4.compiler.semantics.expressions import check
from ofan_p4.compiler.semantics.scope import (
    ConstantName,
    Context,
    Globals,
    Scope,
    TypeName,
    fail,
)
from ofan_p4.compiler.semantics.statements import declare_constant
from ofan_p4.compiler.semantics.structured import check_structured
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.diagnostics import CompileError

CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)


def check_program(program: nd.Program) -> t.Program:
    """Type a program.

    Raises CompileError at the first thing that is wrong, also if there is no `main`.
    """
    context = Context(Scope(), Globals(), checker=check)
    # In order: P4 wants every name declared before its use.
    for node in program.declarations:
        _declare(node, context)

    check_annotations(program.annotations, context)
    structured = check_structured(program.annotations, context)
    _check_version(context)
    declared = context.globals
    if declared.main is None:
        raise CompileError("the program does not instantiate 'main'", program.span)

    lists = (
        tuple(sorted(declared.errors, key=_error_order)),
        tuple(declared.instances),
        tuple(declared.headers),
        tuple(declared.enums),
    )

    warnings = (*unknown_annotations(program.annotations), *declared.warnings)
    return t.Program(declared.main, *lists, declared.spans, structured, warnings)


# Of p4c's v1model.p4, which asks the program with a macro.
FIRST_VERSION, LAST_VERSION = 20180101, 20200408


def _check_version(context: Context) -> None:
    """Check the version of v1model that the program asks for with V1MODEL_VERSION."""
    symbol = context.scope.find("__v1model_version")
    if not isinstance(symbol, ConstantName) or not isinstance(symbol.value, t.Literal):
        return

    # As a number of 32 bits, a negative number is far above all.
    asked = int(symbol.value.value)
    if not FIRST_VERSION <= asked <= LAST_VERSION:
        fail(
            f"{asked} is no version of v1model, which are {FIRST_VERSION} to {LAST_VERSION}",
            symbol.value.span,
        )


def _error_order(name: str) -> int:
    """Sort the errors of core.p4 first, wherever it is included."""
    # The target numbers errors in this order; 0 means no error.
    return CORE_ERRORS.index(name) if name in CORE_ERRORS else len(CORE_ERRORS)


def _declare(node: nd.Declaration, context: Context) -> None:  # noqa: C901 one line for each kind of declaration
    """Add a declaration of the top level to the scope."""
    scope = context.scope
    span = node.span
    match node:
        case n.Constant():
            declare_constant(node, context)
        case nd.Typedef():
            scope.declare(node.name, TypeName(check_typedef(node, context)), span)
        case nd.Struct():
            declare_struct(node, context)
        case nd.EnumDeclaration():
            declared = check_enum(node, context)
            context.globals.enums.append(declared)
            scope.declare(node.name, TypeName(declared), span)
        case nd.NameList():
            declare_names(node, context)
        case nd.Extern():
            scope.declare(node.name, check_extern(node, context), span)
        case nd.ExternFunction():
            declare_extern_function(node, context)
        case nd.Function():
            declare_function(node, context)
        case nd.Action():
            scope.declare(node.name, check_action(node, context), span)
        case nd.BlockType():
            scope.declare(node.name, check_block_type(node, context), span)
        case nd.Parser():
            scope.declare(node.name, check_parser(node, context), span)
        case nd.Control():
            scope.declare(node.name, check_control(node, context), node.name_span)
        case nd.Instance():
            _declare_instance(node, context)
        case _:
            fail("this cannot stand at the top level of a program", span)


def _declare_instance(node: nd.Instance, context: Context) -> None:
    declared = check_instance(node, context)
    context.scope.declare(node.name, declared, node.span)
    if node.name == "main" and not isinstance(declared.type, ty.BlockDefinition):
        fail("'main' must be a package", node.span)

    if isinstance(declared.type, ty.BlockDefinition):
        # Another instance of a package is allowed and has no effect.
        if node.name == "main":
            context.globals.main = declared
    elif isinstance(declared.type, ty.Extern):
        context.globals.instances.append(declared)
    else:
        fail("controls and parsers are instantiated inside others or in 'main'", node.span)
