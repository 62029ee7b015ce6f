"""Which tests a mutated module is shown to, near ones first."""

from dataclasses import dataclass
from pathlib import Path

from sim.kernels.jit import KERNEL_MODULES
from tests.mutants.checkout import P4_TOOLS
from tests.mutants.faults import package_of

ROOMS = {
    "fattree": ("tests/fattree",),
    "controller": ("tests/controller",),
    "hostagent": ("tests/hostagent", "tests/test_isolation.py"),
    "sim": ("tests/sim",),
    "reproduction": ("tests/theory",),
    "p4tools/ofan_p4/softswitch": ("tests/emulation/softswitch",),
}
# Their subjects are not mutated, and they take minutes.
LEFT_OUT = ("tests/reproduction/figures/", "tests/reproduction/report/")
NAIVE = "tests/parity/test_naive_against_sim.py"
# Its tests that take seconds where kernels are plain Python, which each of them enters.
FEW = tuple(
    f"{NAIVE}::test_the_simulator_does_what_the_plain_model_does[{policy}]"
    for policy in ("ofan", "host_pkt_ar", "switch_pkt_ar")
)
# The simulator's windows around P4 programs.
WINDOWS = "tests/parity/test_native_equals_virtual.py"
HOST_RULES = "tests/parity/test_host_rules.py"
VIRTUAL = "tests/emulation/virtual/test_parity.py"
PROGRAMS = "tests/dataplane"

# Rooms with tests that notice mutants which a room's own tests miss.
NEIGHBOURS = {
    "fattree": (NAIVE, "tests/controller", "tests/sim", VIRTUAL),
    "controller": (VIRTUAL, "tests/parity/test_local_repair.py", "tests/emulation/virtual"),
    "hostagent": (NAIVE, VIRTUAL, HOST_RULES, "tests/emulation/mininet/test_agent.py"),
    "sim": (
        NAIVE,
        "tests/parity/test_programs_equal_kernels.py",
        WINDOWS,
        HOST_RULES,
        "tests/parity/test_graphs.py",
    ),
    "reproduction": ("tests/parity/test_invariant.py",),
    "p4tools/ofan_p4/softswitch": (
        PROGRAMS,
        VIRTUAL,
        "tests/emulation/compiler/test_language_cases.py",
        "tests/emulation/stf",
    ),
}


@dataclass(frozen=True)
class Stage:
    """Test files, or single tests, that are equally near to a module.

    `is_near`: they are named after it or import it. `interpreted`: kernels are plain Python.
    """

    files: tuple[str, ...]
    is_near: bool = False
    interpreted: bool = False


def stages(root: Path, module: str) -> list[Stage]:
    """Return the tests of a module in the order in which they are run, each once.

    First those that are named after it or import it, then the rest of its room, then the
    neighbours. Compiling a mutated kernel takes half a minute: near tests run it as plain Python,
    as do a few comparisons with the plain model, and all of these come before the others.
    """
    package = package_of(module)
    tests_of_package = [path for name in ROOMS[package] for path in files(root, name)]
    near = [path for path in tests_of_package if is_near(path, (root / path).read_text(), module)]
    neighbours = [path for name in NEIGHBOURS[package] for path in files(root, name)]
    is_kernel = module in KERNEL_MODULES
    is_simulated = is_kernel and not module.startswith("fattree/")
    compiled = [[NAIVE]] if is_simulated else []
    compiled += [[path for path in tests_of_package if path not in near], neighbours]

    seen = set(near)
    planned = [Stage(tuple(near), is_near=True, interpreted=is_kernel)]
    if is_simulated:
        planned.append(Stage(FEW, interpreted=True))
    for stage in compiled:
        fresh = [path for path in stage if path not in seen]
        seen.update(fresh)
        planned.append(Stage(tuple(fresh)))
    return [stage for stage in planned if stage.files]


def is_near(test: str, source: str, module: str) -> bool:
    """Tell whether a test file is named after a module, or imports it."""
    dotted = module.removeprefix(f"{P4_TOOLS}/").removesuffix(".py").replace("/", ".")
    package, _, name = dotted.rpartition(".")
    ways = (f"from {dotted} import", f"import {dotted}", f"from {package} import {name}")
    return name in Path(test).stem or any(way in source for way in ways)


def files(root: Path, name: str) -> list[str]:
    """Return the test files of a folder, or the one file."""
    path = root / name
    planned = sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    paths = [file.relative_to(root).as_posix() for file in planned]
    return [file for file in paths if not file.startswith(LEFT_OUT)]
