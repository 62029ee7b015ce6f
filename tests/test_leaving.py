"""A part that nothing uses leaves: the product's modules are reached from its commands and API.

Of CONTRIBUTING's rule this is the half that can be computed; read it for the other half.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import ofan
from reproduction.report.contents import BEYOND, FIGURES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(ofan.__file__).parent
P4_TOOLS = ROOT / "p4tools"
# The packages of Ofan's wheel beside its commands' table.
PARTS = ("controller", "emulation", "fattree", "hostagent", "p4src", "reproduction", "sim")
NAMED = re.compile(r"[\w/.]+")


def _modules() -> dict[str, Path]:
    """Return the product's modules by name."""
    paths_of_ofan = [path for part in PARTS for path in (ROOT / part).rglob("*.py")]
    paths_of_ofan.insert(0, ROOT / "ofan.py")
    tools = [path for path in P4_TOOLS.rglob("*.py") if "build" not in path.parts]
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): path
        for folder, paths in ((ROOT, paths_of_ofan), (P4_TOOLS, tools))
        for path in paths
    }


MODULES = _modules()


def words_of(text: str) -> Iterator[str]:
    """Yield the modules that a text may name, `a.b` or `a/b.py`."""
    for word in NAMED.findall(text):
        yield word.removesuffix(".py").replace("/", ".")


def named_by(name: str, path: Path) -> Iterator[str]:
    """Yield the modules that a module imports, names in a text, or runs by their file's name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(source), names=names):
                yield source
                yield from (f"{source}.{alias.name}" for alias in names)
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.Constant(value=str(text)):
                yield from words_of(text)
                if text.endswith(".py"):  # a process that is a file beside this one
                    yield f"{name.rpartition('.')[0]}.{text.removesuffix('.py')}"


def unreached(modules: dict[str, Path], roots: Iterable[str]) -> list[str]:
    """Return the modules that are not reached from the roots, nor a package of such a module."""
    left = dict(modules)
    ahead = list(roots)
    while ahead:
        name = ahead.pop()
        if name in left:
            ahead += [*named_by(name, left.pop(name)), name.rpartition(".")[0]]

    return sorted(left)


def roots() -> Iterator[str]:
    """Yield names that users start or import: programs, the API's page, the reports' figures."""
    for folder in (ROOT, P4_TOOLS):
        scripts = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["scripts"]
        yield from (script.partition(":")[0] for script in scripts.values())

    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    yield from re.findall(r"^::: ([\w.]+)\.\w+$", api, re.MULTILINE)
    yield from (f"reproduction.figures.{name}" for name in (FIGURES | BEYOND).values())


def test_every_module_of_the_product_is_used_by_it() -> None:
    assert unreached(MODULES, roots()) == []


@pytest.mark.parametrize("folder", ["benchmarks", "pages"])
def test_a_page_names_each_program_that_measures_or_makes_pages(folder: str) -> None:
    """A page, a target of `make`, or a program that one of these names."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")]
    pages += [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")]
    programs = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / folder).rglob("*.py")
    }
    assert len(programs) > 3
    named = words_of("\n".join(path.read_text(encoding="utf-8") for path in pages))
    assert unreached(programs, named) == []
