"""The faults that are tried: a sample of all that the packages' modules can be given."""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from sim.kernels.jit import KERNEL_MODULES
from tests.mutants.checkout import ROOT
from tests.mutants.mutations import Mutant, mutants

PACKAGES = (
    "fattree",
    "controller",
    "hostagent",
    "sim",
    "reproduction",
    "p4tools/ofan_p4/softswitch",
)
# Not mutated, as a test could only repeat them: the runs and looks of figures, and
# a command line's words.
DECLARATIONS = (
    "reproduction/figures/",
    "reproduction/report/",
    "sim/cli.py",
    "sim/sweeps/progress.py",
    "fattree/policies.py",
)
# A mutant of a kernel costs as much as several others, so one in so many of them is in the sample.
KERNELS = 3
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True)
class Fault:
    """A mutant and the module that it is of."""

    module: str
    mutant: Mutant

    @property
    def name(self) -> tuple[str, str, str, int]:
        """The parts of a fault that stay the same when other lines change."""
        return self.module, self.mutant.text, self.mutant.change, self.mutant.nth


def package_of(module: str) -> str:
    """Return the package of a module's path."""
    return next(package for package in PACKAGES if module.startswith(f"{package}/"))


def modules(root: Path, package: str) -> list[str]:
    """Return the paths of a package's modules that are mutated."""
    paths = (path.relative_to(root).as_posix() for path in sorted((root / package).rglob("*.py")))
    return [path for path in paths if not path.startswith(DECLARATIONS)]


def every(package: str) -> Iterator[Fault]:
    """Yield all faults of a package."""
    for module in modules(ROOT, package):
        for mutant in mutants((ROOT / module).read_text()):
            yield Fault(module, mutant)


def sample(seed: int, count: int, packages: tuple[str, ...]) -> list[Fault]:
    """Return `count` mutants, as many of each package, each place as likely as the others.

    A place is drawn by its name and the seed, so that an edit elsewhere changes little: those with
    the greatest keys are taken, and the key of the weight w is u ** (1 / w), u uniform in (0, 1)
    (Efraimidis and Spirakis, 2006).
    """

    def key(fault: Fault) -> float:
        drawn = hashlib.sha256(repr((seed, *fault.name)).encode()).digest()
        uniform = (int.from_bytes(drawn[:8], "big") + 0.5) / 2**64
        return float(uniform ** (KERNELS if fault.module in KERNEL_MODULES else 1))

    chosen = []
    for number, package in enumerate(packages):
        share = count * (number + 1) // len(packages) - count * number // len(packages)
        chosen += sorted(every(package), key=key, reverse=True)[:share]
    return sorted(chosen, key=key)


def equivalent() -> set[tuple[str, str, str, int]]:
    """Return (file, line's text, change, nth) of the mutants that are known to change nothing."""
    listed = tomllib.loads(EQUIVALENT.read_text())["mutant"]
    return {(row["file"], row["text"], row["change"], row.get("nth", 1)) for row in listed}
