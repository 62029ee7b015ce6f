"""Run seeded faults on a k = 4 Mininet network with traffic, and look at everything after each.

After every fault the accounts must balance, and every switch hold its plan; after every network,
no process, interface or file may be left.

    python -m tests.drills --count 200 --seed 1 --update docs/faults.md
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from statistics import median

from emulation.errors import EmulationError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.run import Run
from fattree.experiment.model import Scenario
from fattree.units import PS_PER_MS
from tests.drills.faults import FAULTS, Fault, Steps

# After so many faults everything is taken down, looked at, and built anew.
FAULTS_PER_NETWORK = 20
PATIENCE_SECONDS = 120
PACKETS = 16
BEGIN = "<!-- begin: make drills -->"
END = "<!-- end: make drills -->"


@dataclass(slots=True)
class Seen:
    """The results of the drills of one kind of fault."""

    drills: int = 0
    failures: list[str] = field(default_factory=list)
    sent: int = 0
    lost: int = 0
    healed_ms: list[float] = field(default_factory=list)


class DrillError(Exception):
    """Something that must hold after a fault does not."""


def scenario(detection: str) -> Scenario:
    """Return the network: Ofan on links that a busy machine keeps up with."""
    return Scenario.model_validate(
        {
            "policy": "ofan",
            "fabric": {"k": 4, "rate_gbps": 0.0016, "latency_ns": 6e6},
            "collective": {"message_bytes": PACKETS * 4096},
            "controller": {"detection": detection},
        }
    )


def drill(fabric: MininetFabric, fault: Fault, draw: Random, seen: Seen) -> None:
    """Run traffic with a fault at a random moment, and look at everything.

    Raises DrillError.
    """
    run = Run(fabric, fabric.scenario)
    run.start(with_events=False)
    is_mended = [False]
    begin_ms = draw.randrange(0, 400)
    fabric.call_at(begin_ms * PS_PER_MS, partial(_step, fabric, fault(fabric, draw), is_mended))
    _serve(
        fabric, lambda: fabric.agents.have_reported() and is_mended[0], "the traffic never ended"
    )

    mended = time.monotonic()
    _serve(fabric, lambda: _is_quiet(fabric), "a switch never came back to its plan")
    seen.healed_ms.append((time.monotonic() - mended) * 1000)

    # A run that was stopped, or has lost its last packets, has accounts all the same.
    try:
        places = run.outcome().accounts
        seen.sent += places.sent
        seen.lost += places.sent - places.received
    except EmulationError as error:
        if "; " not in str(error) or not str(error).endswith(" 0 unaccounted for"):
            raise DrillError(str(error)) from None
    else:
        if places.unaccounted:
            raise DrillError(places.words())

    for switch, held in fabric.all_entries(range(fabric.tree.switches)).items():
        if dict(held) != dict(fabric.controller.entries(switch)):
            raise DrillError(f"switch {switch} does not hold its plan")


def _step(fabric: MininetFabric, steps: Steps, is_mended: list[bool]) -> None:
    wait_ms = next(steps, None)
    if wait_ms is None:
        is_mended[0] = True
    else:
        fabric.call_at(
            fabric.now_ps() + wait_ms * PS_PER_MS, partial(_step, fabric, steps, is_mended)
        )


def _is_quiet(fabric: MininetFabric) -> bool:
    return (
        not fabric.fleet.lost
        and not fabric.routed
        and not fabric.failed
        and not fabric.switches.processes.exited
        and all(installation.installed_ps is not None for installation in fabric.installations)
    )


def _serve(fabric: MininetFabric, is_over: object, complaint: str) -> None:
    limit = time.monotonic() + PATIENCE_SECONDS

    def over() -> bool:
        if time.monotonic() > limit:
            raise DrillError(complaint)

        fabric.tend()
        return bool(is_over())  # type: ignore[operator]

    fabric.loop.run(over)


@contextmanager
def network(detection: str, folder: Path) -> Iterator[MininetFabric]:
    """Bring a network up, and see that nothing of it is left afterwards; raises DrillError."""
    pids: set[int] = set()
    with mininet_fabric(scenario(detection), Setup(folder=folder)) as fabric:
        fabric.switches.may_restart = True
        pids |= {*fabric.switches.processes.pids.values(), *fabric.agents.pids}
        yield fabric
        pids |= set(fabric.switches.processes.pids.values())

    if remaining := sorted(pid for pid in pids if Path(f"/proc/{pid}").exists()):
        raise DrillError(f"processes are left: {remaining}")
    if folder.exists():
        raise DrillError(f"files are left: {sorted(folder.iterdir())}")


def drills(count: int, seed: int, folder: Path) -> dict[str, Seen]:
    """Run seeded faults; return the results of each kind."""
    seen = {name: Seen() for name in FAULTS}
    names = list(FAULTS)
    done = 0
    while done < count:
        detection = ("announced", "netlink")[done // FAULTS_PER_NETWORK % 2]
        with network(detection, folder) as fabric:
            for number in range(done, min(count, done + FAULTS_PER_NETWORK)):
                # Each drill can be had again by its number alone.
                draw = Random(f"{seed}/{number}")
                name = names[number % len(names)]
                _one(fabric, name, draw, seen[name], f"drill {number} (seed {seed}, {detection})")

        done += FAULTS_PER_NETWORK

    return seen


def _one(fabric: MininetFabric, name: str, draw: Random, seen: Seen, label: str) -> None:
    begun = time.monotonic()
    seen.drills += 1
    verdict = "ok"
    try:
        drill(fabric, FAULTS[name], draw, seen)
    except DrillError as error:
        verdict = str(error)
        seen.failures.append(f"{label}: {error}")

    sys.stdout.write(f"{label}: {name}: {verdict} ({time.monotonic() - begun:.1f} s)\n")
    sys.stdout.flush()


def table(seen: dict[str, Seen], seed: int) -> str:
    """Return the drills as a table for docs/faults.md."""
    lines = [
        f"| fault (seed {seed}) | drills | held | packets sent / lost |"
        " back at the plan, median (ms) |",
        "|---|---|---|---|---|",
    ]
    for name, result in seen.items():
        if result.drills:
            description = (FAULTS[name].__doc__ or name).split("\n")[0].rstrip(".")
            lines.append(
                f"| {description} | {result.drills} | {result.drills - len(result.failures)} |"
                f" {result.sent:,} / {result.lost:,} |"
                f" {median(result.healed_ms) if result.healed_ms else 0:.0f} |"
            )

    return "\n".join(lines)


def main() -> int:
    """Run the drills of the command line; 1 where something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("/run/ofan-drills"))
    parser.add_argument("--update", type=Path, help="write the table into this page")
    options = parser.parse_args()

    seen = drills(options.count, options.seed, options.folder)
    text = table(seen, options.seed)
    sys.stdout.write(f"{text}\n")
    if options.update:
        before, _, rest = options.update.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        options.update.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")

    failures = [line for result in seen.values() for line in result.failures]
    sys.stdout.write("".join(f"{line}\n" for line in failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
