"""Which modules of ours a module depends on, by following the imports in its text."""

import ast
from collections.abc import Iterator

from sim.kernels.jit import ROOT

PACKAGES = ("fattree", "hostagent", "sim")


def import_closure(module: str) -> set[str]:
    """Return a module ("sim/kernels/windows.py") and all that it imports of ours, directly or not.

    Packages' `__init__` are left out where only a module of theirs is imported.
    """
    paths: set[str] = set()
    waiting = [module]
    while waiting:
        path = waiting.pop()
        if path not in paths:
            paths.add(path)
            waiting += _imported(path)
    return paths


def _imported(path: str) -> Iterator[str]:
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith(PACKAGES) for alias in node.names), path
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGES):
            base = (node.module or "").replace(".", "/")
            yield from (_file(base, alias.name) for alias in node.names)


def _file(base: str, name: str) -> str:
    """Return the file that `from base import name` reads: a module of a package, or the base."""
    candidates = (
        f"{base}/{name}.py",
        f"{base}/{name}/__init__.py",
        f"{base}.py",
        f"{base}/__init__.py",
    )
    return next(path for path in candidates if (ROOT / path).is_file())
