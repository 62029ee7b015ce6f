"""`make mutants`: how many of a sample of small faults the tests notice.

Why not mutmut or cosmic-ray: mutmut leaves decorated functions alone, which all numba kernels are,
and cosmic-ray changes the files of the checkout itself; neither takes a seeded sample.

Every worker has a copy of the checkout, changes one file of it at a time, and runs the test files
that are near it or enter the changed function until a test fails. The functions that a test file
enters, and its seconds, are seen in a run without any mutant and kept under build/mutants.
Mutants that change nothing are in equivalent.toml, with the reason; they do not count.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from queue import Queue

from tests.mutants.checkout import ROOT, Checkout
from tests.mutants.faults import PACKAGES, Fault, equivalent, package_of, sample
from tests.mutants.judging import Verdict, content, judge, verdict
from tests.mutants.measured import Measurements

ENOUGH = 0.95


def known(faults: list[Fault], path: Path | None) -> list[Verdict]:
    """Return the verdicts that need no test: listed as equivalent, or in a file and still true."""
    listed = equivalent()
    read = json.loads(path.read_text()) if path and path.exists() else []
    earlier = {ruling.name: ruling for ruling in (Verdict(**ruling) for ruling in read)}
    true = []
    for fault in faults:
        before = earlier.get(fault.name)
        if fault.name in listed:
            true.append(verdict(fault, "equivalent"))
        elif before and before.content == content(fault, before.by):
            true.append(before)
    return true


def verdicts(faults: list[Fault], workers: int) -> Iterator[Verdict]:
    """Yield the verdicts as they come."""
    measurements = Measurements()
    checkouts: Queue[Checkout] = Queue()
    for number in range(workers):
        checkouts.put(Checkout(ROOT / "build" / "mutants" / str(number)))

    def judged(fault: Fault) -> Verdict:
        checkout = checkouts.get()
        try:
            return judge(checkout, fault, measurements)
        finally:
            checkouts.put(checkout)

    with ThreadPoolExecutor(workers) as pool:
        for judgement in as_completed([pool.submit(judged, fault) for fault in faults]):
            yield judgement.result()


def write(path: Path, rulings: list[Verdict]) -> None:
    """Write verdicts, whole or not at all: a run may be killed at any time."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps([asdict(ruling) for ruling in rulings], indent=1))
    fresh.replace(path)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def report(rulings: list[Verdict]) -> float:
    """Print the table and the survivors; return the share of mutants that were noticed."""
    fates = Counter((package_of(ruling.module), ruling.fate) for ruling in rulings)
    say(f"\n{'package':24}{'noticed':>9}{'survived':>10}{'equivalent':>12}")
    for package in PACKAGES:
        row = [fates[package, fate] for fate in ("noticed", "survived", "equivalent")]
        if any(row):
            say(f"{package:24}{row[0]:9}{row[1]:10}{row[2]:12}")

    survivors = [ruling for ruling in rulings if ruling.fate == "survived"]
    for ruling in survivors:
        say(f"\n{ruling.module}:{ruling.line}: {ruling.change}\n    {ruling.text}")

    noticed = sum(ruling.fate == "noticed" for ruling in rulings)
    counted = noticed + len(survivors)
    share = noticed / counted if counted else 1.0
    say(f"\n{noticed} of {counted} mutants were noticed: {share:.1%}")
    return share


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=100, help="mutants to try (default 100)")
    parser.add_argument("--only", choices=PACKAGES, help="mutate one package")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--json",
        type=Path,
        help="write every verdict to this file, and go on from those that are in it and still true",
    )
    options = parser.parse_args()

    packages = (options.only,) if options.only else PACKAGES
    faults = sample(options.seed, options.sample, packages)
    rulings = known(faults, options.json)
    done = {ruling.name for ruling in rulings}
    if rulings:
        say(f"{len(rulings)} of {len(faults)} verdicts are known already")

    pending = [fault for fault in faults if fault.name not in done]
    for ruling in verdicts(pending, options.workers):
        rulings.append(ruling)
        line = f"{ruling.module}:{ruling.line}"
        say(f"{len(rulings)}/{len(faults)} {ruling.fate}: {line}: {ruling.change} {ruling.by}")
        if options.json:
            write(options.json, rulings)

    return 0 if report(rulings) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
