"""Which tests a mutated module is shown to, quick ones first, and which modules are mutated."""

from pathlib import Path

from sim.jit import KERNEL_MODULES

PACKAGES = ("fattree", "controller", "hostagent", "sim", "emulation/softswitch")

# Not mutated, as a test could only say the same again: what the figures run and how they look, and
# a command line's words.
DECLARATIONS = (
    "sim/figures/",
    "sim/report/",
    "sim/cli.py",
    "sim/progress.py",
    "fattree/policies.py",
)

ROOMS = {
    "fattree": ("tests/fattree",),
    "controller": ("tests/controller",),
    "hostagent": ("tests/hostagent",),
    "sim": ("tests/sim", "tests/theory"),
    "emulation/softswitch": ("tests/emulation/softswitch",),
}
NAIVE = "tests/parity/test_naive_against_sim.py"
# The simulator's windows around P4 programs.
WINDOWS = "tests/parity/test_native_equals_virtual.py"
VIRTUAL = "tests/emulation/virtual/test_parity.py"
PROGRAMS = "tests/dataplane"

# Who notices what a room's own tests miss.
NEIGHBOURS = {
    "fattree": (NAIVE, "tests/controller", "tests/sim", VIRTUAL),
    "controller": (VIRTUAL, "tests/parity/test_local_repair.py", "tests/emulation/virtual"),
    "hostagent": (NAIVE, VIRTUAL, "tests/emulation/virtual"),
    "sim": (NAIVE, "tests/parity/test_programs_equal_kernels.py", WINDOWS),
    "emulation/softswitch": (
        PROGRAMS,
        VIRTUAL,
        "tests/emulation/compiler/test_language_cases.py",
        "tests/emulation/stf",
    ),
}


def package_of(module: str) -> str:
    """Return the package of a module's path."""
    return next(package for package in PACKAGES if module.startswith(f"{package}/"))


def modules(root: Path, package: str) -> list[str]:
    """Return the paths of a package's modules that are mutated."""
    paths = (path.relative_to(root).as_posix() for path in sorted((root / package).rglob("*.py")))
    return [path for path in paths if not path.startswith(DECLARATIONS)]


def stages(root: Path, module: str) -> list[list[str]]:
    """Return the tests of a module in the order in which they are run, each once.

    First those that are named after it, then those that import it, then all of its room, then the
    neighbours. Where numba compiles the module, the comparison with the plain model comes early:
    every process that compiles costs half a minute, and this one sees the most.
    """
    package = package_of(module)
    room = [path for name in ROOMS[package] for path in files(root, name)]
    stem, dotted = Path(module).stem, module.removesuffix(".py").replace("/", ".")
    named = [path for path in room if stem in Path(path).stem]
    importing = [path for path in room if imports((root / path).read_text(), dotted)]
    wanted = [named, importing, room, *(files(root, name) for name in NEIGHBOURS[package])]
    if module.startswith("sim/") and module in KERNEL_MODULES:
        wanted.insert(0, [NAIVE])

    seen: set[str] = set()
    found = []
    for stage in wanted:
        fresh = [path for path in stage if path not in seen]
        seen.update(fresh)
        if fresh:
            found.append(fresh)
    return found


def files(root: Path, name: str) -> list[str]:
    """Return the test files of a folder, or the one file."""
    path = root / name
    found = sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    return [each.relative_to(root).as_posix() for each in found]


def imports(source: str, dotted: str) -> bool:
    package, _, name = dotted.rpartition(".")
    ways = (f"from {dotted} import", f"import {dotted}", f"from {package} import {name}")
    return any(way in source for way in ways)
