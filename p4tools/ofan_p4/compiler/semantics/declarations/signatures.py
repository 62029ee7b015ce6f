"""Parameters, and the declarations made of parameters: externs and the types of blocks."""

from __future__ import annotations

from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import Context, Overloads, TypeName, fail
from ofan_p4.compiler.semantics.type_names import resolve_type
from ofan_p4.compiler.semantics.values import check_as, is_compile_time
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.diagnostics import Span


def params_of(
    nodes: tuple[nd.Parameter, ...], context: Context, constructor: bool = False
) -> tuple[ty.Parameter, ...]:
    """Type parameters."""
    params: list[ty.Parameter] = []
    for node in nodes:
        # Checked here, since signatures without a body declare nothing.
        if any(node.name == present.name for present in params):
            fail(f"parameter '{node.name}' is declared twice", node.span)

        if constructor and node.direction:
            fail("a constructor parameter has no direction", node.span)

        declared = resolve_type(node.type, context)
        # A direction means a copy at run time, where no value is an `int`.
        if declared == ty.INT and node.direction:
            fail("a parameter of type int has no direction", node.span)

        # They are no values that could be copied.
        is_object = isinstance(declared, ty.Extern | ty.Block) or declared == ty.STRING
        if is_object and node.direction:
            fail(f"a parameter of type {ty.show(declared)} has no direction", node.span)

        default = _default(node, declared, context)
        params.append(
            ty.Parameter(
                node.span,
                name=node.name,
                direction=node.direction,
                type=declared,
                default=default,
                annotations=node.annotations,
                constructor=constructor,
            )
        )

    return tuple(params)


def _default(node: nd.Parameter, declared: ty.Type, context: Context) -> ty.Expression | None:
    if node.default is None:
        return None

    if node.direction in ("out", "inout"):
        fail(f"an {node.direction} parameter has no default", node.span)

    if any(note.name == "optional" for note in node.annotations):
        fail("an @optional parameter has no default", node.span)

    value = check_as(node.default, declared, context)
    if not is_compile_time(value):
        fail("a default must be known at compile time", node.default.span)

    return value


def declare_params(params: tuple[ty.Parameter, ...], context: Context) -> None:
    """Declare parameters in the scope of the body."""
    for param in params:
        # A body could not tell whether it was given.
        if any(note.name == "optional" for note in param.annotations):
            fail("only what has no body can have @optional parameters", param.span)

        context.scope.declare(param.name, param, param.span)


def _generics(names: tuple[str, ...], context: Context, span: Span) -> tuple[ty.TypeVariable, ...]:
    variables = tuple(ty.TypeVariable(name) for name in names)
    for variable in variables:
        context.scope.declare(variable.name, TypeName(variable), span)

    return variables


def check_signature(node: nd.Method, context: Context) -> ty.Signature:
    """Type a function or method without its body."""
    inner = context.nested()
    variables = _generics(node.type_params, inner, node.span)
    returns = resolve_type(node.returns, inner) if node.returns else ty.VOID

    return ty.Signature(node.name, variables, params_of(node.params, inner), returns)


def check_extern(node: nd.Extern, context: Context) -> ty.ExternDefinition:
    """Type an extern: its constructors and methods."""
    inner = context.nested()
    variables = _generics(node.type_params, inner, node.span)
    signatures: list[tuple[bool, ty.Signature]] = []
    for method in node.methods:
        if method.returns is not None and method.name == node.name:
            fail(f"the constructor of {node.name} returns no value", method.span)

        signature = check_signature(method, inner)
        # Calls choose by the number of arguments alone.
        if any(
            signature.name == earlier.name and len(signature.params) == len(earlier.params)
            for _, earlier in signatures
        ):
            fail(f"'{signature.name}' is declared twice", method.span)

        signatures.append((method.returns is None, signature))

    constructors = tuple(signature for is_constructor, signature in signatures if is_constructor)
    methods = tuple(signature for is_constructor, signature in signatures if not is_constructor)

    return ty.ExternDefinition(node.name, variables, constructors, methods)


def declare_extern_function(node: nd.ExternFunction, context: Context) -> None:
    """Declare an extern function, which may have several signatures."""
    # Only extern functions may share a name; the call picks a function by its arguments.
    present = context.scope.symbols.get(node.name)
    signature = check_signature(node.method, context)
    if isinstance(present, Overloads):
        present.signatures.append(signature)
    else:
        context.scope.declare(node.name, Overloads([signature]), node.span)


def check_block_type(node: nd.BlockType, context: Context) -> ty.BlockDefinition:
    """Type the declaration of a parser, control or package without a body."""
    inner = context.nested()
    variables = _generics(node.type_params, inner, node.span)
    params = params_of(node.params, inner, constructor=node.kind == "package")
    return ty.BlockDefinition(node.kind, node.name, variables, params)
