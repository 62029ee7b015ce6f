"""Declarations and the whole program."""

from __future__ import annotations

from emulation.compiler.diagnostics import CompileError, Span
from emulation.compiler.semantics import typed as t
from emulation.compiler.semantics import types as ty
from emulation.compiler.semantics.annotations import find_annotation
from emulation.compiler.semantics.constructors import check_constructor
from emulation.compiler.semantics.expressions import check, check_as
from emulation.compiler.semantics.folding import wrap
from emulation.compiler.semantics.scope import (
    Context,
    GenericFunction,
    GenericStruct,
    Globals,
    Overloads,
    Scope,
    TypeName,
    fail,
)
from emulation.compiler.semantics.statements import (
    check_block,
    declare_constant,
    declare_variable,
)
from emulation.compiler.semantics.states import check_state, state_names
from emulation.compiler.semantics.tables import check_table
from emulation.compiler.semantics.type_names import constant_int, resolve_type
from emulation.compiler.syntax import nodes as n
from emulation.compiler.syntax.cursor import Cursor
from emulation.compiler.syntax.expressions import comma_list, expression
from emulation.compiler.syntax.lexer import Kind, Token

CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)


def check_program(program: n.Program) -> t.Program:
    """Type a program.

    Raises CompileError at the first thing that is wrong, also if there is no `main`.
    """
    context = Context(Scope(), Globals())
    for node in program.declarations:
        declare(node, context)

    found = context.globals
    if found.main is None:
        raise CompileError("the program does not instantiate 'main'", program.span)

    lists = (
        tuple(sorted(found.errors, key=_error_order)),
        tuple(found.instances),
        tuple(found.headers),
        tuple(found.enums),
    )

    return t.Program(found.main, *lists, found.spans)


def _error_order(name: str) -> int:
    """Sort the errors of core.p4 first, wherever it is included: the target says 0 where there was
    no error.
    """
    return CORE_ERRORS.index(name) if name in CORE_ERRORS else len(CORE_ERRORS)


def declare(node: n.Declaration, context: Context) -> None:  # noqa: C901 one line for each kind of declaration
    """Add a declaration of the top level to the scope."""
    scope = context.scope
    span = node.span
    match node:
        case n.Constant():
            declare_constant(node, context)
        case n.Typedef():
            scope.declare(node.name, TypeName(_typedef(node, context)), span)
        case n.Struct():
            _declare_struct(node, context)
        case n.EnumDeclaration():
            enum = _enum(node, context)
            context.globals.enums.append(enum)
            scope.declare(node.name, TypeName(enum), span)
        case n.NameList():
            _name_list(node, context)
        case n.Extern():
            scope.declare(node.name, _extern(node, context), span)
        case n.ExternFunction():
            _declare_extern_function(node, context)
        case n.Function():
            _declare_function(node, context)
        case n.Action():
            scope.declare(node.name, _action(node, context), span)
        case n.BlockType():
            scope.declare(node.name, _block_type(node, context), span)
        case n.Parser():
            scope.declare(node.name, _parser(node, context), span)
        case n.Control():
            scope.declare(node.name, _control(node, context), node.name_span)
        case n.Instance():
            _declare_instance(node, context)
        case _:
            fail("this cannot stand at the top level of a program", span)


# Types


def _typedef(node: n.Typedef, context: Context) -> ty.Type:
    target = resolve_type(node.type, context)
    if not node.distinct:
        return target

    if not isinstance(target, ty.Bits | ty.NewType) and target != ty.BOOL:
        fail(f"'type' cannot be made of {ty.show(target)}", node.type.span)

    return ty.NewType(node.name, target, node.annotations)


def _declare_struct(node: n.Struct, context: Context) -> None:
    if node.type_params:
        context.scope.declare(node.name, GenericStruct(node, context.scope), node.span)
        return

    struct = ty.Struct(node.kind, node.name, struct_fields(node, context), node.annotations)
    context.scope.declare(node.name, TypeName(struct), node.span)
    context.globals.spans[struct] = node.span

    if node.kind == "header":
        context.globals.headers.append(struct)


def struct_fields(node: n.Struct, context: Context) -> tuple[ty.StructField, ...]:
    """Type the fields of a struct, header or union."""
    fields: list[ty.StructField] = []
    for item in node.fields:
        if any(item.name == present.name for present in fields):
            fail(f"field '{item.name}' is declared twice", item.span)

        field_type = resolve_type(item.type, context)
        if not _may_contain(node.kind, field_type):
            fail(f"a {node.kind} cannot have a field of type {ty.show(field_type)}", item.type.span)

        fields.append(
            ty.StructField(item.name, field_type, item.annotations, _field_lists(item, context))
        )

    if sum(isinstance(item.type, ty.Varbit) for item in fields) > 1:
        fail("a header can have one varbit field only", node.span)

    return tuple(fields)


def _field_lists(node: n.Field, context: Context) -> tuple[int, ...]:
    """Evaluate the indices of `@field_list(...)`."""
    note = find_annotation(node.annotations, "field_list")
    if note is None:
        return ()

    end = Token(Kind.END, "end of the annotation", note.span)
    cursor = Cursor([*note.tokens, Token(Kind.SYMBOL, ")", note.span), end])
    indices = comma_list(cursor, ")", expression)

    return tuple(
        constant_int(index, context, what="the index of a field list", low=0, high=255)
        for index in indices
    )


def _may_contain(kind: str, field_type: ty.Type) -> bool:
    below = ty.underlying(field_type)
    match kind:
        case "header_union":
            return isinstance(below, ty.Struct) and below.kind == "header"
        case "header":
            nested = isinstance(below, ty.Struct) and below.kind == "struct"
            return isinstance(below, ty.Bits | ty.Varbit) or below == ty.BOOL or nested
        case _:
            plain = isinstance(
                below, ty.Bits | ty.Enum | ty.Struct | ty.Stack | ty.Tuple | ty.Varbit
            )
            return plain or below in (ty.BOOL, ty.ERROR)


def _enum(node: n.EnumDeclaration, context: Context) -> ty.Enum:
    names = tuple(member.name for member in node.members)
    for member in node.members:
        if names.count(member.name) > 1:
            fail(f"member '{member.name}' is declared twice", member.span)

    if node.underlying is None:
        valued = next((member for member in node.members if member.value is not None), None)
        if valued:
            fail(
                f"enum {node.name} has no underlying type, so its members have no values",
                valued.span,
            )

        return ty.Enum(node.name, names)

    base = ty.underlying(resolve_type(node.underlying, context))
    if not isinstance(base, ty.Bits):
        fail(f"an enum cannot be made of {ty.show(base)}", node.underlying.span)

    return ty.Enum(
        node.name,
        names,
        base,
        {item.name: _member_value(item, base, context) for item in node.members},
    )


def _member_value(member: n.EnumMember, base: ty.Bits, context: Context) -> int:
    if member.value is None:
        fail(f"member '{member.name}' needs a value", member.span)

    value = check(member.value, context)
    if not isinstance(value, t.Literal) or not ty.is_numeric(ty.underlying(value.type)):
        fail("the value of a member must be a number known at compile time", member.value.span)

    if wrap(int(value.value), base) != value.value:
        fail(f"{value.value} does not fit in {ty.show(base)}", member.value.span)

    return int(value.value)


def _name_list(node: n.NameList, context: Context) -> None:
    known = context.globals.errors if node.kind == "error" else context.globals.match_kinds
    for name, span in node.names:
        if name in known:
            fail(f"{node.kind} '{name}' is declared twice", span)

        known.append(name)


# Signatures


def params_of(
    nodes: tuple[n.Parameter, ...], context: Context, constructor: bool = False
) -> tuple[t.Parameter, ...]:
    """Type parameters."""
    params: list[t.Parameter] = []
    for node in nodes:
        if any(node.name == present.name for present in params):
            fail(f"parameter '{node.name}' is declared twice", node.span)

        if constructor and node.direction:
            fail("a constructor parameter has no direction", node.span)

        declared = resolve_type(node.type, context)
        if declared == ty.INT and node.direction:
            fail("a parameter of type int has no direction", node.span)

        default = check_as(node.default, declared, context) if node.default else None
        params.append(
            t.Parameter(
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


def _declare_params(params: tuple[t.Parameter, ...], context: Context) -> None:
    for param in params:
        context.scope.declare(param.name, param, param.span)


def _generics(names: tuple[str, ...], context: Context, span: Span) -> tuple[ty.TypeVariable, ...]:
    variables = tuple(ty.TypeVariable(name) for name in names)
    for variable in variables:
        context.scope.declare(variable.name, TypeName(variable), span)

    return variables


def _signature(node: n.Method, context: Context) -> ty.Signature:
    inner = context.nested()
    variables = _generics(node.type_params, inner, node.span)
    returns = resolve_type(node.returns, inner) if node.returns else ty.VOID

    return ty.Signature(node.name, variables, params_of(node.params, inner), returns)


def _extern(node: n.Extern, context: Context) -> ty.ExternDefinition:
    inner = context.nested()
    variables = _generics(node.type_params, inner, node.span)
    signatures = [(method.returns is None, _signature(method, inner)) for method in node.methods]
    constructors = tuple(signature for is_constructor, signature in signatures if is_constructor)
    methods = tuple(signature for is_constructor, signature in signatures if not is_constructor)

    return ty.ExternDefinition(node.name, variables, constructors, methods)


def _declare_extern_function(node: n.ExternFunction, context: Context) -> None:
    present = context.scope.symbols.get(node.name)
    signature = _signature(node.method, context)
    if isinstance(present, Overloads):
        present.signatures.append(signature)
    else:
        context.scope.declare(node.name, Overloads([signature]), node.span)


def _block_type(node: n.BlockType, context: Context) -> ty.BlockDefinition:
    inner = context.nested()
    variables = _generics(node.type_params, inner, node.span)
    return ty.BlockDefinition(node.kind, node.name, variables, params_of(node.params, inner))


# Functions and actions


def _declare_function(node: n.Function, context: Context) -> None:
    if node.method.type_params:
        signature = _signature(node.method, context)
        context.scope.declare(node.name, GenericFunction(node, context.scope, signature), node.span)
        return

    function = _function(node, context.nested(place="function"))
    context.scope.declare(node.name, function, node.span)


def _function(node: n.Function, inner: Context) -> t.Function:
    assert node.method.returns is not None
    returns = resolve_type(node.method.returns, inner)
    params = params_of(node.method.params, inner)
    _declare_params(params, inner)
    body = check_block(node.body, inner.nested(returns=returns))

    if returns != ty.VOID and not always_returns(body):
        fail(f"function '{node.name}' can end without returning a value", node.method.span)

    return t.Function(node.span, name=node.name, params=params, returns=returns, body=body)


def always_returns(body: t.Body) -> bool:
    """Say whether every way through a body ends with a return."""
    for statement in body:
        match statement:
            case t.Return() | t.Exit():
                return True
            case t.Block(_, inner) if always_returns(inner):
                return True
            case t.If(_, _, then, otherwise) if always_returns(then) and always_returns(otherwise):
                return True

    return False


def instantiate_function(
    symbol: GenericFunction, args: tuple[ty.Type, ...], context: Context
) -> t.Function:
    """Check a generic function for these type arguments; once for the same arguments."""
    if args not in symbol.made:
        inner = Context(symbol.scope, context.globals).nested(place="function")
        for name, arg in zip(symbol.node.method.type_params, args, strict=True):
            inner.scope.declare(name, TypeName(arg), symbol.node.span)

        symbol.made[args] = _function(symbol.node, inner)

    return symbol.made[args]


def _action(node: n.Action, context: Context) -> t.Action:
    inner = context.nested(place="action", returns=ty.VOID)
    params = params_of(node.params, inner)
    directionless = False

    for param in params:
        if param.direction and directionless:
            fail("parameters with a direction stand before those without", param.span)

        directionless = directionless or not param.direction
        _require_action_type(param)

    _declare_params(params, inner)
    body = check_block(node.body, inner)
    return t.Action(
        node.span,
        name=node.name,
        params=params,
        body=body,
        annotations=node.annotations,
        top_level=context.place == "top",
    )


def _require_action_type(param: t.Parameter) -> None:
    if param.direction:
        return

    below = ty.underlying(param.type)
    if not isinstance(below, ty.Bits) and below != ty.BOOL:
        fail(f"the control plane cannot give a value of type {ty.show(param.type)}", param.span)


# Instances


def _declare_instance(node: n.Instance, context: Context) -> None:
    instance = _instance(node, context)
    context.scope.declare(node.name, instance, node.span)
    if isinstance(instance.type, ty.BlockDefinition):
        if node.name == "main":
            context.globals.main = instance
    elif isinstance(instance.type, ty.Extern):
        context.globals.instances.append(instance)
    else:
        fail("controls and parsers are instantiated inside others or in 'main'", node.span)


def _instance(node: n.Instance, context: Context) -> t.Instance:
    made, args = check_constructor(node.type, node.args, node.span, context)
    return t.Instance(node.span, name=node.name, type=made, args=args, annotations=node.annotations)


# Parsers and controls


def _control(node: n.Control, context: Context) -> t.Control:
    _refuse_generics(node.type_params, "control", node.span)
    inner = context.nested(place="control", returns=ty.VOID, direct_applications=[])
    params = params_of(node.params, inner)
    constructor = params_of(node.constructor, inner, constructor=True)
    _declare_params((*params, *constructor), inner)
    local = [made for item in node.locals if (made := _control_local(item, inner)) is not None]
    body = check_block(node.body, inner)
    direct = inner.direct_applications or []

    return t.Control(
        node.span,
        name=node.name,
        params=params,
        constructor=constructor,
        locals=(*local, *direct),
        body=body,
        annotations=node.annotations,
    )


def _refuse_generics(names: tuple[str, ...], what: str, span: Span) -> None:
    if names:
        fail(f"a {what} with a body cannot have type parameters", span)


def _control_local(
    node: n.Declaration, context: Context
) -> t.Variable | t.Instance | t.Action | t.Table | None:
    match node:
        case n.Constant():
            declare_constant(node, context)
            return None
        case n.Variable():
            return declare_variable(node, context)
        case n.Instance():
            instance = _instance(node, context)
            context.scope.declare(node.name, instance, node.span)
            return instance
        case n.Action():
            action = _action(node, context)
            context.scope.declare(node.name, action, node.span)
            return action
        case n.Table():
            table = check_table(node, context)
            context.scope.declare(node.name, table, node.name_span)
            return table
        case _:
            return fail("this cannot stand in a control", node.span)


def _parser(node: n.Parser, context: Context) -> t.ParserBlock:
    _refuse_generics(node.type_params, "parser", node.span)
    inner = context.nested(place="parser", returns=ty.VOID, direct_applications=[])
    params = params_of(node.params, inner)
    constructor = params_of(node.constructor, inner, constructor=True)
    _declare_params((*params, *constructor), inner)
    local = [made for item in node.locals if (made := _parser_local(item, inner)) is not None]
    names = state_names(node)
    states = tuple(check_state(state, names, inner) for state in node.states)
    direct = inner.direct_applications or []

    return t.ParserBlock(
        node.span,
        name=node.name,
        params=params,
        constructor=constructor,
        locals=(*local, *direct),
        states=states,
        annotations=node.annotations,
    )


def _parser_local(
    node: n.Declaration, context: Context
) -> t.Variable | t.Instance | t.ValueSet | None:
    match node:
        case n.Constant():
            declare_constant(node, context)
            return None
        case n.Variable():
            return declare_variable(node, context)
        case n.Instance():
            instance = _instance(node, context)
            context.scope.declare(node.name, instance, node.span)
            return instance
        case n.ValueSet():
            element = resolve_type(node.type, context)
            value_set = t.ValueSet(
                node.span,
                name=node.name,
                type=element,
                size=check(node.size, context),
                annotations=node.annotations,
            )

            context.scope.declare(node.name, value_set, node.span)
            return value_set
        case _:
            return fail("this cannot stand in a parser", node.span)
