"""Is a change one of words alone? Syntax trees of two commits, equal up to names and docstrings.

    python -m tests.words.trees main

compares each changed module of the working tree with a commit's. Docstrings and comments may
differ, and names of a function's own variables, each always in the same way: parameters, attributes
and names of modules and classes may not, as other modules know them.
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def canonical(text: str) -> str:
    """Return a module's syntax tree as text, without docstrings, own variables numbered."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and _has_docstring(node):
            # A body of a docstring alone stays a body.
            node.body = node.body[1:] or [ast.Pass()]

    _Numbering().visit(tree)
    return ast.dump(tree, indent=1)


def _has_docstring(node: ast.Module | ast.ClassDef | Function) -> bool:
    match node.body:
        case [ast.Expr(value=ast.Constant(value=str())), *_]:
            return True

    return False


class _Numbering(ast.NodeTransformer):
    """Gives own variables of functions numbers in the order of their appearance."""

    def __init__(self) -> None:
        # None for a name that stays: a parameter, or a variable of another scope.
        self._scopes: list[dict[str, str | None]] = []
        self._made = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Number a function's own variables."""
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Number a function's own variables."""
        return self._function(node)

    def _function(self, node: Function) -> ast.AST:
        parameters = {argument.arg for argument in _arguments(node.args)}
        shared = {name for inner in _inner(node) for name in _declared(inner)}
        stored = [name for inner in _inner(node) for name in _stored(inner)]
        numbers: dict[str, str] = {}
        for name in stored:
            if name not in parameters | shared and name not in numbers:
                self._made += 1
                numbers[name] = f"variable {self._made}"

        # Decorators, defaults and annotations belong to the scope around.
        for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if part is not None:
                self.visit(part)

        self._scopes.append({**dict.fromkeys(parameters | shared), **numbers})
        node.body = [self.visit(statement) for statement in node.body]
        self._scopes.pop()
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a name by its number."""
        for scope in reversed(self._scopes):
            if node.id in scope:
                node.id = scope[node.id] or node.id
                break

        return node

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        """Replace a captured name."""
        node.name = self._number(node.name)
        return self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> ast.AST:
        """Replace a captured name."""
        node.name = self._number(node.name)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """Replace an error's name."""
        node.name = self._number(node.name)
        return self.generic_visit(node)

    def _number(self, name: str | None) -> str | None:
        for scope in reversed(self._scopes):
            if name is not None and name in scope:
                return scope[name] or name

        return name


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            yield extra


def _inner(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function in their order, those of functions and classes inside not.

    Comprehensions and lambdas are inside: their variables are numbered with the function's.
    """
    for child in ast.iter_child_nodes(function):
        if isinstance(child, Function | ast.ClassDef):
            continue

        yield child
        yield from _inner(child)


def _stored(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
            yield name
        case ast.ExceptHandler(name=str() as name):
            yield name


def _declared(node: ast.AST) -> Iterator[str]:
    """Yield names that belong to another scope, and parameters of lambdas."""
    match node:
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.Lambda(args=arguments):
            yield from (argument.arg for argument in _arguments(arguments))


def difference(before: str, after: str) -> str:
    """Return the first line in which two modules differ by more than words, or nothing."""
    for old, new in zip(*(canonical(text).splitlines() for text in (before, after)), strict=False):
        if old != new:
            return f"{old.strip()} -> {new.strip()}"

    lengths = [len(canonical(text)) for text in (before, after)]
    return "" if lengths[0] == lengths[1] else "one of them goes on"


def main() -> int:
    """Compare the changed modules; 1 where one differs by more than words."""
    parser = argparse.ArgumentParser(prog="python -m tests.words.trees", description=__doc__)
    parser.add_argument("base", help="the commit before the change")
    base = parser.parse_args().base
    listed = _git("diff", "--name-only", "--diff-filter=M", base, "--", "*.py").splitlines()
    wrong = 0
    for path in listed:
        line = difference(_git("show", f"{base}:{path}"), (ROOT / path).read_text("utf-8"))
        wrong += bool(line)
        if line:
            sys.stdout.write(f"{path}: {line}\n")

    sys.stdout.write(f"{len(listed)} modules, {wrong} differ by more than words\n")
    return bool(wrong)


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
