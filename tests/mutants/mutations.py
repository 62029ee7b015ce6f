"""The faults that a source can be given: each changes one place, as a slip of the hand would.

A mutant replaces the text of one syntax node, so that the rest of the file stays as it was written.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}

# Swapped, these fail at once whatever the tests, or mean the same.
ORDERLESS = {"isinstance", "issubclass", "getattr", "setattr", "hasattr", "cast", "min", "max"}


@dataclass(frozen=True)
class Mutant:
    """One fault: its place, its change, and the source that has it.

    `function` is the first line of the function that it is in, as Python counts it (with its
    decorators), and 1 outside of functions; `nth` tells equal changes of equal lines apart.
    """

    line: int
    function: int
    nth: int
    text: str
    change: str
    source: str


def mutants(source: str) -> list[Mutant]:
    """Return all mutants of a source, in the order of its lines."""
    lines = source.splitlines()
    tree = ast.parse(source)
    bodies = list(functions(tree))
    counts: Counter[tuple[str, str]] = Counter()
    mutations = []
    for node, replacement, change in sorted(
        changes(tree),
        key=lambda candidate: (candidate[0].lineno, candidate[0].col_offset, candidate[2]),
    ):
        text = lines[node.lineno - 1].strip()
        counts[text, change] += 1
        mutant = Mutant(
            line=node.lineno,
            function=max((first for first, body in bodies if node.lineno in body), default=1),
            nth=counts[text, change],
            text=text,
            change=change,
            source=replaced(source, node, replacement),
        )
        mutations.append(mutant)
    return mutations


def functions(tree: ast.AST) -> Iterator[tuple[int, range]]:
    """Yield the first line of every function and the lines of its body."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield first, range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)


Located = ast.expr | ast.stmt
Change = tuple[Located, str, str]


def replaced(source: str, node: Located, replacement: str) -> str:
    """Return a source with another text in the place of a node."""
    lines = source.splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None

    # Columns count bytes.
    before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
    after = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
    return "".join(
        [*lines[: node.lineno - 1], before, replacement, after, *lines[node.end_lineno :]]
    )


def changes(tree: ast.AST) -> Iterator[Change]:
    """Yield (node, replacement, description) of every place where a fault makes sense."""
    for node in relevant(tree):
        if isinstance(node, ast.expr):
            yield from of_expression(node)
        elif isinstance(node, ast.stmt):
            yield from of_statement(node)


def relevant(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without the parts that need no test: annotations and the words of messages."""
    yield node
    skipped: list[ast.AST | None] = []
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            skipped = [node.returns, *node.decorator_list]
        case ast.ClassDef():
            skipped = list(node.decorator_list)
        case ast.AnnAssign():
            skipped = [node.annotation]
        case ast.arg() | ast.keyword(arg="strict"):
            # zip's `strict` asserts equal lengths, which hold anyway.
            return
    for child in ast.iter_child_nodes(node):
        if not any(child is skipped_node for skipped_node in skipped):
            yield from relevant(child)


def of_expression(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.Constant(value=bool(value)):
            yield node, str(not value), f"{value} to {not value}"
        case ast.Constant(value=int(value)):
            yield node, str(value + 1), f"{value} to {value + 1}"
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            opposite = COMPARISONS[type(operator)]()
            yield node, text(ast.Compare(left, [opposite], [right])), named(operator, opposite)
        case ast.BinOp(left=left, op=operator, right=right) if is_number(node):
            twin = OPERATORS.get(type(operator))
            if twin:
                yield node, text(ast.BinOp(left, twin(), right)), named(operator, twin())
        case ast.BoolOp(op=ast.And(), values=values):
            yield node, text(ast.BoolOp(ast.Or(), values)), "And to Or"
        case ast.BoolOp(op=ast.Or(), values=values):
            yield node, text(ast.BoolOp(ast.And(), values)), "Or to And"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, text(operand), "Not removed"
        case ast.Call():
            yield from of_call(node)


def of_call(node: ast.Call) -> Iterator[Change]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    arguments = node.args
    if name in TWINS and not (name == "sorted" and node.keywords):
        twin = ast.Call(ast.Name(TWINS[name]), arguments, node.keywords)
        yield node, text(twin), f"{name} to {TWINS[name]}"

    plain = not any(isinstance(argument, ast.Starred) for argument in arguments[:2])
    if len(arguments) >= 2 and plain and name not in ORDERLESS:
        first, second, *rest = arguments
        if ast.dump(first) != ast.dump(second):
            swapped = ast.Call(node.func, [second, first, *rest], node.keywords)
            yield node, text(swapped), "arguments swapped"


def of_statement(node: ast.stmt) -> Iterator[Change]:
    """Yield a statement's deletion, unless code after it would only fail for want of a name."""
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break():
            yield node, "pass", "deleted"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "pass", "deleted"
        case ast.If(orelse=[]):
            yield node, "pass", "deleted"


def is_number(node: ast.BinOp) -> bool:
    """Tell whether an operator may be arithmetic: not text, not a union of types."""
    parts = (node.left, node.right)
    if any(isinstance(part, ast.JoinedStr | ast.List | ast.Tuple) for part in parts):
        return False
    return not any(
        isinstance(part, ast.Constant) and not isinstance(part.value, int | float) for part in parts
    )


def named(old: ast.AST, new: ast.AST) -> str:
    return f"{type(old).__name__} to {type(new).__name__}"


def text(node: ast.expr) -> str:
    """Return an expression in parentheses: it may stand where only one operand is meant."""
    return f"({ast.unparse(ast.fix_missing_locations(node))})"
