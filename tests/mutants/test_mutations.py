"""The faults, their places, and the tests to which they are shown."""

import ast

import pytest

from tests.mutants.checkout import ROOT
from tests.mutants.faults import PACKAGES, equivalent, modules, sample
from tests.mutants.mutations import mutants
from tests.mutants.relevance import FEW, NAIVE, NEIGHBOURS, ROOMS, stages


def made(source: str) -> set[str]:
    return {mutant.source for mutant in mutants(source)}


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("a < b", {"(a <= b)"}),
        ("a != b", {"(a == b)"}),
        ("a + b", {"(a - b)"}),
        ("a >> b", {"(a << b)"}),
        ("a and b", {"(a or b)"}),
        ("not a", {"(a)"}),
        ("x = 7", {"x = 8"}),
        ("x = True", {"x = False"}),
        ("x = max(a, b)", {"x = (min(a, b))"}),
        ("x = f(a, b)", {"x = (f(b, a))"}),
        ("f()", {"pass"}),
        ("x.y = a", {"pass"}),
        ("x += a", {"pass"}),
        ("if a:\n    b()", {"pass", "if a:\n    pass"}),
        ("def f(a=1): return a", {"def f(a=2): return a"}),
        ("é = 'é' if a == b else c", {"é = 'é' if (a != b) else c"}),
    ],
)
def test_a_fault_changes_one_place(source: str, faults: set[str]) -> None:
    assert made(source) == faults


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring of 3 words."""',
        "def f(a: int | None) -> tuple[int, ...]: return a",
        "x: Annotated[int, Field(ge=1)] = y",
        "raise ValueError(f'{a + 1} is not {b - 1}')",
        "x = f'{a + 1}'",
        "x = 'a' + b",
        "x = isinstance(a, b)",
        "x = zip(a, strict=True)",
        "x = a",
    ],
)
def test_what_no_test_need_see_is_left_alone(source: str) -> None:
    assert made(source) == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_mutant_is_python_that_differs(package: str) -> None:
    for module in modules(ROOT, package)[::5]:
        source = (ROOT / module).read_text()
        for mutant in mutants(source)[::10]:
            assert mutant.source != source
            ast.parse(mutant.source)


def test_a_seed_fixes_the_sample() -> None:
    packages = ("controller", "hostagent")
    first, again, of_seed_2 = (sample(seed, 9, packages) for seed in (1, 1, 2))
    assert first == again != of_seed_2
    assert {fault.module.split("/")[0] for fault in first} == set(packages)
    assert len({fault.name for fault in first}) == len(first)


def test_a_mutant_knows_its_function_and_its_equals() -> None:
    source = "a = 0\n@cache\ndef f(b=1):\n    a = 0\n\n    def g():\n        a = 0\n"
    functions = [(mutant.line, mutant.function, mutant.nth) for mutant in mutants(source)]
    assert functions == [(1, 1, 1), (3, 1, 1), (4, 2, 2), (7, 6, 3)]


def test_near_tests_come_first_and_each_once() -> None:
    first, *later = stages(ROOT, "fattree/routes/iwrr.py")
    assert "tests/fattree/test_iwrr.py" in first.files
    assert [first.is_near, *(stage.is_near for stage in later)] == [True, False, False]
    paths = [path for stage in (first, *later) for path in stage.files]
    assert len(paths) == len(set(paths))
    assert all((ROOT / path).is_file() for path in paths)


def test_near_tests_of_kernels_run_them_as_plain_python() -> None:
    first, few, compiled, *_ = stages(ROOT, "sim/kernels/windows.py")
    assert "tests/sim/test_windows.py" in first.files
    assert few.files == FEW
    assert compiled.files == (NAIVE,)
    assert [stage.interpreted for stage in (first, few, compiled)] == [True, True, False]


def test_every_test_that_is_named_is_there() -> None:
    named = {name for names in (*ROOMS.values(), *NEIGHBOURS.values()) for name in names}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_what_is_listed_as_equivalent_is_still_there() -> None:
    for file, *entry in equivalent():
        source = (ROOT / file).read_text()
        entries = [[mutant.text, mutant.change, mutant.nth] for mutant in mutants(source)]
        assert entry in entries, f"{file}: {entry}"
