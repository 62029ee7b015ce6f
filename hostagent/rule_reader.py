"""The language of host rules: the Python that means the same everywhere, read line by line.

It has integers of 64 bits that wrap around, lists of fixed length with indices that do, too, loops
over ranges, functions that call functions above them; nothing else. So a rule can only compute,
with any user's rights, and a wrong rule is refused with the error's line before it runs. A number
that a way through a function leaves out is 0 there.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NoReturn

from fattree.errors import ExperimentError
from fattree.files.text_file import line_of_zero_byte
from hostagent.rule_expressions import Expressions, Function, nearest, shown
from hostagent.rule_rounds import MOST_ROUNDS, EndlessError, Rounds
from hostagent.rule_words import (
    ADVICE,
    BUILTINS,
    IMPORTABLE,
    IMPORTS,
    MOST_CELLS,
    NEXT_LABEL,
    RECORDS,
    SIGNATURES,
    TOOLS,
    WORDS,
    State,
)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The contents of a rule's file: its state, its constants, and a module of its functions."""

    state: State
    constants: dict[str, int]
    module: ast.Module


def read_rule(text: str, name: str, helpers: Mapping[str, Callable[..., int]]) -> Found:
    """Read a rule; `helpers` compute the operators in constants.

    Raises ExperimentError with the line of the error.
    """
    # Versions of Python differ in the error, and most give no line.
    if zero_at := line_of_zero_byte(text):
        raise ExperimentError(f"{name}:{zero_at}: not Python: there is a zero byte")

    reader = _Reader(name, helpers)
    try:
        # `ast` alone lets `break` pass outside of a loop.
        compile(text, name, "exec", dont_inherit=True)
        reader.read(ast.parse(text))
    except SyntaxError as error:
        raise ExperimentError(f"{name}:{error.lineno or 1}: not Python: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ExperimentError(f"{name}: nested too deeply") from None
    # `compile` does not take the text; the reader's errors are of this kind, too.
    except ValueError as error:
        raise (
            error
            if isinstance(error, ExperimentError)
            else ExperimentError(f"{name}: not Python: {error}")
        ) from None

    module = ast.fix_missing_locations(ast.Module(body=reader.definitions, type_ignores=[]))
    return Found(reader.state, reader.constants, module)


def evaluated(
    module: ast.Module,
    name: str,
    names: Mapping[str, Any],
    ready: Callable[[Callable[..., Any]], Any],
) -> dict[str, Any]:
    """Return the functions of a module that has been read; `ready` is applied to each.

    They see `names` and `TOOLS` alone.
    """
    tools = {tool: function for tool, (function, _, _) in TOOLS.items()}
    space: dict[str, Any] = {"__builtins__": {}, "range": range, "_ready": ready, **tools, **names}
    exec(compile(module, name, "exec"), space)
    return {
        definition.name: space[definition.name]
        for definition in module.body
        if isinstance(definition, ast.FunctionDef)
    }


@dataclass(slots=True)
class _Reader(Expressions):
    """A reader of modules, from top to bottom: a name may be used below its definition.

    `visit` returns an expression's new form, or a list of a statement's new statements.
    """

    def generic_visit(self, node: ast.AST) -> NoReturn:
        """Refuse a node without a method of its own."""
        operator = getattr(node, "op", node)
        raise self.error(node, f"`{shown(node)}`: {ADVICE.get(type(operator), WORDS)}")

    def read(self, tree: ast.Module) -> None:
        """Read all; raises ExperimentError."""
        for statement in tree.body:
            self._top(statement)

        for name, parameters in SIGNATURES.items():
            if name not in self.functions:
                near = nearest(name, self.functions)
                raise ExperimentError(
                    f"{self.name}: there is no function {name}({', '.join(parameters)}){near}"
                )

    # The outermost level: imports, constants, the state's class, functions.

    def _top(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self._claim(node, name)
                self.constants[name] = self._constant(value)
            case ast.ClassDef():
                self._class(node)
            case ast.FunctionDef():
                self._function(node)
            case _:
                raise self.error(
                    node,
                    f"`{shown(node)}`: outside functions there are imports, constants"
                    " and one dataclass",
                )

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = node.module if isinstance(node, ast.ImportFrom) and not node.level else None
        importable = IMPORTS.get(module or "", ())
        if any(alias.name not in importable or alias.asname for alias in node.names):
            raise self.error(node, f"`{shown(node)}`: {IMPORTABLE}")

        self.imported |= {alias.name for alias in node.names}

    def _claim(self, node: ast.AST, name: str) -> None:
        """Refuse a name that means something already."""
        if name.startswith("_"):
            raise self.error(node, f"{name}: names do not begin with an underscore")

        taken = (self.constants, self.functions, [self.state_class], TOOLS, RECORDS, BUILTINS)
        if any(name in names for names in taken):
            raise self.error(node, f"{name} means something already")

    def _constant(self, node: ast.expr) -> int:
        """Return the value of an expression of constants."""
        expression = ast.fix_missing_locations(ast.Expression(self.visit(node)))
        space = {"__builtins__": {}, **self.helpers, **self.constants}
        return int(eval(compile(expression, self.name, "eval"), space))

    def _class(self, node: ast.ClassDef) -> None:
        self._claim(node, node.name)
        if self.state_class:
            raise self.error(node, f"{node.name}: the state is {self.state_class} already")

        decorators = [
            decorator.func if isinstance(decorator, ast.Call) else decorator
            for decorator in node.decorator_list
        ]
        if (
            [ast.unparse(decorator) for decorator in decorators] != ["dataclass"]
            or node.bases
            or node.keywords
        ):
            raise self.error(node, f"{node.name}: the state is a class with @dataclass alone")

        self.state_class = node.name
        for statement in node.body:
            match statement:
                case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                    pass
                case ast.AnnAssign(target=ast.Name(id=name)):
                    self._field(statement, name)
                case _:
                    raise self.error(
                        statement, f"`{shown(statement)}`: fields are as in `seen: int = 0`"
                    )

    def _field(self, node: ast.AnnAssign, name: str) -> None:
        if name.startswith("_") or name in self.state:
            raise self.error(node, f"{name}: a name of its own, without an underscore before it")

        kind = ast.unparse(node.annotation)
        if kind == "int" and node.value is not None:
            self.state[name] = self._constant(node.value)
        elif kind == "list[int]" and node.value is not None:
            self.state[name] = self._cells(node, name, node.value)
        else:
            raise self.error(
                node,
                f"`{shown(node)}`: fields are integers with a default (`{name}: int = 0`)"
                f" or lists of them (`{name}: list[int] = field(default_factory=lambda: [0] * 4)`)",
            )

    def _cells(self, node: ast.AnnAssign, name: str, value: ast.expr) -> tuple[int, ...]:
        made: ast.expr = value
        match value:
            case ast.Call(
                func=ast.Name(id="field"),
                args=[],
                keywords=[ast.keyword(arg="default_factory", value=ast.Lambda(body=made))],
            ):
                pass

        cells, times = made, 1
        if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult):
            cells, times = made.left, self._constant(made.right)

        if not isinstance(cells, ast.List):
            raise self.error(node, f"{name}: write it as `field(default_factory=lambda: [0] * 4)`")

        numbers = tuple(map(self._constant, cells.elts))
        if not 1 <= len(numbers) * max(times, 0) <= MOST_CELLS:
            raise self.error(node, f"{name}: a list has 1 to {MOST_CELLS} numbers")

        return numbers * times

    # Functions.

    def _function(self, node: ast.FunctionDef) -> None:
        self._claim(node, node.name)
        parameters = self._parameters(node)
        assigned = [
            part.id
            for part in _walk(node.body)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        ]
        numbers = frozenset({*assigned, *parameters} - set(RECORDS))
        values = [part.value for part in _walk(node.body) if isinstance(part, ast.Return)]
        returns = any(values) or node.name == NEXT_LABEL
        self.here = Function(parameters, numbers, returns=returns)

        # Set at the beginning, so that no way through the function leaves a number out.
        zeros = [
            ast.Assign([ast.Name(name, ast.Store())], ast.Constant(0))
            for name in dict.fromkeys(assigned)
            if name not in parameters
        ]
        body = [*zeros, *self._body(node.body)]
        # After the statements, as a refused statement may be why no return is reached.
        if returns and not (all(values) and _always_returns(node.body)):
            raise self.error(node, f"{node.name}: it must return a number on every way through it")

        self.here.rounds = self._rounds(node)
        self.definitions.append(_definition(node, parameters, body))
        self.functions[node.name] = self.here
        self.here = Function()

    def _parameters(self, node: ast.FunctionDef) -> tuple[str, ...]:
        arguments = node.args
        more = (
            arguments.vararg,
            arguments.kwarg,
            arguments.kwonlyargs,
            arguments.posonlyargs,
            arguments.defaults,
        )
        if node.decorator_list or any(more):
            raise self.error(node, f"{node.name}: a function has plain parameters, no decorators")

        parameters = tuple(argument.arg for argument in arguments.args)
        expected = SIGNATURES.get(node.name, parameters)
        if parameters != expected:
            raise self.error(
                node,
                f"{node.name}({', '.join(parameters)}): it must be"
                f" {node.name}({', '.join(expected)})",
            )

        for argument in arguments.args:
            if argument.arg not in RECORDS:
                self._claim(argument, argument.arg)

        return parameters

    def _rounds(self, node: ast.FunctionDef) -> int:
        """Return the most rounds of a function; refuse a function that may take too many."""
        lists = {name: len(cells) for name, cells in self.state.items() if isinstance(cells, tuple)}
        callees = {name: function.rounds for name, function in self.functions.items()}
        try:
            return Rounds(self.constants, lists, callees).of(node.body)
        except EndlessError as error:
            raise self.error(
                error.statement,
                f"`{shown(error.statement)}`: with it {node.name} may take {error.rounds:,} rounds"
                f" of loops and calls, and {MOST_ROUNDS:,} are the most:"
                " bound them, as in range(min(number, 64))",
            ) from None

    def _body(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        made = [
            ast.copy_location(new, statement)
            for statement in statements
            for new in self.visit(statement)
        ]
        return made or [ast.Pass()]

    # Statements.

    def visit_Pass(self, node: ast.stmt) -> list[ast.stmt]:
        """Keep the statement."""
        return [node]

    visit_Break = visit_Continue = visit_Pass

    def visit_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        """Take a call, or a docstring, which is left out."""
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return []
        if not isinstance(node.value, ast.Call):
            self.generic_visit(node)

        return [ast.Expr(self._called(node.value, is_statement=True))]

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        """Take a number, or nothing."""
        return [ast.Return(node.value and self.visit(node.value))]

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        """Take both branches."""
        otherwise = self._body(node.orelse) if node.orelse else []
        return [ast.If(self.visit(node.test), self._body(node.body), otherwise)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        """Take a loop over a range."""
        match node:
            case ast.For(
                target=ast.Name() as target,
                iter=ast.Call(func=ast.Name(id="range"), args=[_] | [_, _] as bounds, keywords=[]),
                orelse=[],
            ):
                numbers = [self._integer(bound) for bound in bounds]
            case _:
                raise self.error(
                    node, f"`{shown(node)}`: loops are `for name in range(...)`, with no step"
                )

        counted = ast.Call(ast.Name("range", ast.Load()), numbers, [])
        return [ast.For(self._target(target), counted, self._body(node.body), [])]

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        """Take a number for one name or field."""
        if len(node.targets) != 1:
            raise self.error(node, f"`{shown(node)}`: one name or field takes one number")

        number = self.visit(node.value)
        return [ast.Assign([self._target(node.targets[0])], number)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        """Take a number for one name, without its type."""
        if node.value is None:
            return []

        number = self.visit(node.value)
        return [ast.Assign([self._target(node.target)], number)]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        """Write `a op= b` as `a = a op b`, an index of `a` being computed once."""
        target = self._target(node.target)
        first: list[ast.stmt] = []
        if isinstance(target, ast.Subscript):
            first = [ast.Assign([ast.Name("_index", ast.Store())], target.slice)]
            target = ast.Subscript(target.value, ast.Name("_index", ast.Load()), ast.Store())

        old = copy(target)
        old.ctx = ast.Load()
        new = self._operation(node, old, self.visit(node.value))
        return [*first, ast.Assign([target], new)]

    def _target(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                if name not in self.here.parameters or name in RECORDS:
                    self._claim(node, name)

                return ast.Name(name, ast.Store())
            case ast.Attribute(value=ast.Name(id="state"), attr=name):
                return ast.Attribute(self.visit(node).value, name, ast.Store())
            case ast.Attribute(value=ast.Name(id="sender" | "rules" as record)):
                raise self.error(node, f"{shown(node)}: {record} is to be read; keep it in state")
            case ast.Subscript():
                return self._cell(node, ast.Store())

        raise self.error(node, f"`{shown(node)}`: one name or field takes one number")


def _definition(
    node: ast.FunctionDef, parameters: Sequence[str], body: list[ast.stmt]
) -> ast.FunctionDef:
    """Return a function that `_ready` makes ready: without types, as they are all the same."""
    # Parsed, not made: the fields of a definition depend on Python's version.
    made = ast.parse("@_ready\ndef rule(): ...").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.name = node.name
    made.args.args = [ast.arg(name) for name in parameters]
    made.body = body
    return ast.copy_location(made, node)


def _walk(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from ast.walk(statement)


def _always_returns(body: Sequence[ast.stmt]) -> bool:
    """Return whether no way through the statements leads past their end."""
    return any(
        isinstance(statement, ast.Return)
        or (
            isinstance(statement, ast.If)
            and _always_returns(statement.body)
            and _always_returns(statement.orelse)
        )
        for statement in body
    )
