"""`make mutants`: how many of a sample of small faults the tests notice.

Why not mutmut or cosmic-ray: mutmut leaves decorated functions alone, which all numba kernels are,
and cosmic-ray changes the files of the checkout itself; neither takes a seeded sample, nor chooses
tests by the mutated module, without which a mutant costs minutes.

Every worker has a copy of the checkout, changes one file of it at a time, and runs the tests that
`relevance` names until one fails. A process's time limit is in seconds of the processor, so that a
busy machine makes no mutant look noticed. Mutants that change nothing are in equivalent.toml, with
the reason; they do not count.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Literal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from sim.jit import KERNEL_MODULES
from tests.mutants.mutations import Mutant, mutants
from tests.mutants.relevance import PACKAGES, modules, stages

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
ENOUGH = 0.95
# Processor seconds that a stage may take: to start and perhaps compile kernels, and for each file.
START_S, FILE_S = 90, 15
# A mutant of a kernel costs as much as several others, so one in so many of them is in the sample.
KERNELS = 3
# pytest's exit codes: all passed, some failed, nothing to run.
PASSED, FAILED, NOTHING = 0, 1, 5

Fate = Literal["noticed", "survived", "equivalent"]


@dataclass(frozen=True)
class Fault:
    """A mutant and the module that it is of."""

    module: str
    mutant: Mutant


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant; `by` names the test that failed."""

    module: str
    line: int
    text: str
    change: str
    fate: Fate
    by: str = ""


def sample(seed: int, count: int, packages: tuple[str, ...]) -> list[Fault]:
    """Return `count` mutants, as many of each package, each place as likely as the others."""
    rng = random.Random(seed)
    found = []
    for number, package in enumerate(packages):
        wanted = count * (number + 1) // len(packages) - count * number // len(packages)
        every = [
            Fault(module, mutant)
            for module in modules(ROOT, package)
            for mutant in mutants((ROOT / module).read_text())
        ]
        weights = [1 / KERNELS if fault.module in KERNEL_MODULES else 1 for fault in every]
        keys = [rng.random() ** (1 / weight) for weight in weights]
        chosen = sorted(range(len(every)), key=keys.__getitem__, reverse=True)[:wanted]
        found += [every[index] for index in chosen]
    rng.shuffle(found)
    return found


def equivalent() -> set[tuple[str, str, str]]:
    """Return (file, line's text, change) of the mutants that are known to change nothing."""
    listed = tomllib.loads(EQUIVALENT.read_text())["mutant"]
    return {(each["file"], each["text"], each["change"]) for each in listed}


class Overlay:
    """A copy of the checkout in which one file at a time is another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def judge(self, fault: Fault, excused: list[str]) -> Verdict:
        """Run a mutant's tests until one fails; `excused` ones fail without any mutant."""
        path = self.folder / fault.module
        original = path.read_text()
        path.write_text(fault.mutant.source)
        try:
            failed = next(self.failures(fault.module, excused), "")
        finally:
            path.write_text(original)

        mutant = fault.mutant
        return Verdict(
            module=fault.module,
            line=mutant.line,
            text=mutant.text,
            change=mutant.change,
            fate="noticed" if failed else "survived",
            by=failed,
        )

    def failures(self, module: str, excused: list[str]) -> Iterator[str]:
        for stage in stages(self.folder, module):
            deselected = [f"--deselect={name}" for name in excused]
            ended = self.pytest(["-x", *deselected], stage)
            if ended.returncode not in (PASSED, NOTHING):
                yield first_failure(ended) or f"{stage[0]} (ended with {ended.returncode})"

    def pytest(self, options: list[str], files: list[str]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider"]
        environment = os.environ | {
            # Entry points and child processes must find the copy, not what is installed.
            "PYTHONPATH": str(self.folder),
            "NUMBA_CACHE_DIR": str(self.folder / ".numba"),
            "PYTHONDONTWRITEBYTECODE": "1",
            # The same hypothesis examples for every mutant.
            "CI": "true",
        }
        return subprocess.run(
            [*command, "-m", "not slow and not root", *options, *files],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=partial(limit, START_S + FILE_S * len(files)),
        )


def limit(seconds: int) -> None:
    """Bound a test process: an endless loop is noticed, too."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


def first_failure(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the first test that failed, or could not even be collected."""
    words = [
        line.split()[1]
        for line in ended.stdout.splitlines()
        if line.startswith(("FAILED ", "ERROR "))
    ]
    return words[0] if words else ""


def failing(overlay: Overlay, faults: list[Fault]) -> list[str]:
    """Return the tests that fail without a mutant: they can notice none."""
    paths = {path for fault in faults for stage in stages(ROOT, fault.module) for path in stage}
    ended = overlay.pytest([], sorted(paths))
    if ended.returncode not in (PASSED, FAILED):
        raise SystemExit(f"the tests do not even run: {ended.stdout[-2000:]}{ended.stderr[-2000:]}")

    lines = ended.stdout.splitlines()
    return [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]


def verdicts(faults: list[Fault], workers: int) -> Iterator[Verdict]:
    """Yield the verdicts as they come."""
    known = equivalent()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        overlays: Queue[Overlay] = Queue()
        for number in range(workers):
            overlays.put(Overlay(Path(folder) / str(number)))

        first = overlays.get()
        excused = failing(first, faults)
        overlays.put(first)
        for name in excused:
            say(f"fails without a mutant, and is left out: {name}")

        def judged(fault: Fault) -> Verdict:
            mutant = fault.mutant
            if (fault.module, mutant.text, mutant.change) in known:
                place = fault.module, mutant.line, mutant.text, mutant.change
                return Verdict(*place, fate="equivalent")
            overlay = overlays.get()
            try:
                return overlay.judge(fault, excused)
            finally:
                overlays.put(overlay)

        with ThreadPoolExecutor(workers) as pool:
            for judgement in as_completed([pool.submit(judged, fault) for fault in faults]):
                yield judgement.result()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def report(found: list[Verdict]) -> float:
    """Print the table and the survivors; return the share of mutants that were noticed."""
    fates = Counter((package, each.fate) for each in found for package in [package_name(each)])
    say(f"\n{'package':24}{'noticed':>9}{'survived':>10}{'equivalent':>12}")
    for package in PACKAGES:
        row = [fates[package, fate] for fate in ("noticed", "survived", "equivalent")]
        if any(row):
            say(f"{package:24}{row[0]:9}{row[1]:10}{row[2]:12}")

    survivors = [each for each in found if each.fate == "survived"]
    for each in survivors:
        say(f"\n{each.module}:{each.line}: {each.change}\n    {each.text}")

    noticed = sum(each.fate == "noticed" for each in found)
    counted = noticed + len(survivors)
    share = noticed / counted if counted else 1.0
    say(f"\n{noticed} of {counted} mutants were noticed: {share:.1%}")
    return share


def package_name(verdict: Verdict) -> str:
    return next(name for name in PACKAGES if verdict.module.startswith(f"{name}/"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=100, help="mutants to try (default 100)")
    parser.add_argument("--only", choices=PACKAGES, help="mutate one package")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="write every verdict to this file")
    options = parser.parse_args()

    packages = (options.only,) if options.only else PACKAGES
    faults = sample(options.seed, options.sample, packages)
    found = []
    for verdict in verdicts(faults, options.workers):
        found.append(verdict)
        place = f"{verdict.module}:{verdict.line}"
        say(f"{len(found)}/{len(faults)} {verdict.fate}: {place}: {verdict.change} {verdict.by}")
        if options.json:
            options.json.write_text(json.dumps([asdict(each) for each in found], indent=1))

    return 0 if report(found) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
