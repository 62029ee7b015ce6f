"""Numbers in host rules: the new form of each expression, or an error with its line."""

import ast
import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fattree.errors import ExperimentError
from hostagent.rule_words import (
    BUILTINS,
    COMPARISONS,
    HELPERS,
    LARGEST,
    READABLE,
    RECORDS,
    SAFE,
    TOOLS,
    State,
)


@dataclass(slots=True)
class Function:
    """A function of a rule: its parameters, and the names of its numbers.

    `returns` is whether it returns a number, `rounds` the most rounds of its loops and calls.
    """

    parameters: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()
    returns: bool = False
    rounds: int = 0


@dataclass(slots=True)
class Expressions(ast.NodeVisitor):
    """A reader of numbers; `constants`, `functions` and `state` are those read so far.

    `visit` returns an expression's new form; `here` is the function that is being read.
    """

    name: str
    helpers: Mapping[str, Callable[..., int]]
    constants: dict[str, int] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    definitions: list[ast.stmt] = field(default_factory=list)
    state: State = field(default_factory=dict)
    state_class: str = ""
    imported: set[str] = field(default_factory=set)
    here: Function = field(default_factory=Function)

    def error(self, node: ast.AST, problem: str) -> ExperimentError:
        """Return an error with a node's line."""
        return ExperimentError(f"{self.name}:{getattr(node, 'lineno', 1)}: {problem}")

    def visit(self, node: ast.AST) -> Any:
        """Return a node's new form; new expressions have the old positions."""
        made = ast.NodeVisitor.visit(self, node)
        return ast.copy_location(made, node) if isinstance(made, ast.expr) else made

    def _integer(self, node: ast.expr) -> ast.expr:
        """Return an expression with an integer value, never a truth value."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return self.visit(node)  # type: ignore[no-any-return]

        return ast.copy_location(helper_call("_int", self.visit(node)), node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Take integers and truth values."""
        if not isinstance(node.value, int):
            raise self.error(node, f"{shown(node)}: the numbers of a rule are integers")
        if node.value > LARGEST:
            raise self.error(node, f"{node.value} does not fit into 64 bits")

        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Take a number that has a name."""
        if node.id in RECORDS:
            raise self.error(node, f"{node.id} is not a number: use its fields")

        names = {*self.constants, *self.here.numbers}
        if node.id not in names:
            raise self.error(node, f"nothing is called {node.id}{nearest(node.id, names)}")

        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Take arithmetic."""
        return self._operation(node, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Take signs, ~ and not."""
        number = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(ast.Not(), number)

        return helper_call(HELPERS[type(node.op)], number)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Take `and` and `or`."""
        return ast.BoolOp(node.op, [self.visit(operand) for operand in node.values])

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Take comparisons of numbers."""
        if not all(isinstance(item, COMPARISONS) for item in node.ops):
            self.generic_visit(node)

        comparators = [self.visit(item) for item in node.comparators]
        return ast.Compare(self.visit(node.left), node.ops, comparators)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Take a choice of two numbers."""
        return ast.IfExp(*map(self.visit, (node.test, node.body, node.orelse)))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Take a field of a record."""
        record = node.value.id if isinstance(node.value, ast.Name) else ""
        if record not in ("state", *READABLE):
            raise self.error(node, f"{shown(node)}: only state, sender and rules have fields")

        fields = self.state if record == "state" else READABLE[record]
        self._check_field(node, record, fields)
        if record == "state" and isinstance(self.state[node.attr], tuple):
            raise self.error(node, f"{shown(node)} is a list: a number of it has [...] behind it")

        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Take a number of a list."""
        return self._cell(node, ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Take a call that returns a number."""
        return self._called(node, is_statement=False)

    def _operation(
        self, node: ast.BinOp | ast.AugAssign, left: ast.expr, right: ast.expr
    ) -> ast.expr:
        if isinstance(node.op, SAFE):
            return ast.BinOp(left, node.op, right)
        if type(node.op) not in HELPERS:
            self.generic_visit(node)

        return helper_call(HELPERS[type(node.op)], left, right)

    def _check_field(self, node: ast.Attribute, record: str, candidates: Iterable[str]) -> None:
        if record not in self.here.parameters:
            raise self.error(node, f"{record} is not among the parameters here")
        if node.attr not in candidates:
            near = nearest(node.attr, candidates)
            raise self.error(node, f"{record} has no field {node.attr}{near}")

    def _cell(self, node: ast.Subscript, context: ast.expr_context) -> ast.expr:
        cells = self._list(node.value)
        index = helper_call("_mod", self.visit(node.slice), ast.Constant(len(cells)))
        return ast.Subscript(node.value, ast.copy_location(index, node), context)

    def _list(self, node: ast.expr) -> tuple[int, ...]:
        match node:
            case ast.Attribute(value=ast.Name(id="state"), attr=name):
                self._check_field(node, "state", self.state)
                cells = self.state[name]
                if isinstance(cells, tuple):
                    return cells

        raise self.error(node, f"`{shown(node)}` is no list: fields of the state can be lists")

    # Calls.

    def _called(self, node: ast.Call, is_statement: bool) -> ast.expr:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.error(node, f"`{shown(node)}`: functions are called by name, no keywords")

        name = node.func.id
        if name in BUILTINS:
            return self._builtin(node, name)

        if name not in self.functions and name not in self.imported & TOOLS.keys():
            hint = f": from hostagent.transports.labels import {name}" if name in TOOLS else ""
            names = sorted({*BUILTINS, *self.functions, *(self.imported & TOOLS.keys())})
            raise self.error(node, f"{name} is not among {', '.join(names)}{hint}")

        if name in self.functions and not is_statement and not self.functions[name].returns:
            raise self.error(node, f"{name} returns nothing")

        parameters = self._wanted(name)
        if len(parameters) != len(node.args):
            raise self.error(node, f"`{shown(node)}`: it takes ({', '.join(parameters)})")

        arguments = [self._argument(*pair) for pair in zip(parameters, node.args, strict=True)]
        return ast.Call(node.func, arguments, [])

    def _wanted(self, name: str) -> tuple[str, ...]:
        if name in self.functions:
            return self.functions[name].parameters

        _, records, numbers = TOOLS[name]
        return (*records, *["a number"] * numbers)

    def _argument(self, parameter: str, argument: ast.expr) -> ast.expr:
        # One kind of number, so that a function is compiled once.
        if parameter not in RECORDS:
            return self._integer(argument)

        if not isinstance(argument, ast.Name) or argument.id != parameter:
            raise self.error(argument, f"`{shown(argument)}` stands where {parameter} must")
        if parameter not in self.here.parameters:
            raise self.error(argument, f"{parameter} is not among the parameters here")

        return argument

    def _builtin(self, node: ast.Call, name: str) -> ast.expr:
        match name, node.args:
            case "len", [cells]:
                return ast.Constant(len(self._list(cells)))
            case "abs", [number]:
                return helper_call("_abs", self._integer(number))
            case "int", [number]:
                return self._integer(number)
            case "bool", [number]:
                return ast.Compare(self._integer(number), [ast.NotEq()], [ast.Constant(0)])
            case (("min" | "max"), [first, _, *_]):
                made = self._integer(first)
                for argument in node.args[1:]:
                    made = helper_call(f"_{name}", made, self._integer(argument))

                return made

        raise self.error(node, f"`{shown(node)}`: not how a rule calls {name}")


def helper_call(name: str, *arguments: ast.expr) -> ast.expr:
    """Return the call in place of an operator."""
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def shown(node: ast.AST) -> str:
    """Return a node's text for messages."""
    text = ast.unparse(node).splitlines()[0]
    return text if len(text) <= 50 else f"{text[:47]}..."


def nearest(word: str, candidates: Iterable[str]) -> str:
    """Return a question with the known word that is nearest to a word, if any is near."""
    close = difflib.get_close_matches(word, list(candidates), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
