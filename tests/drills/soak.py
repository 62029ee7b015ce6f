"""Keep a held Mininet network busy for long: traffic, a flap every ten seconds, and a browser.

Every run's packets must be accounted for, and of every process memory, descriptors and threads
must not grow after the first tenth of the time.

    python -m tests.drills.soak --minutes 60 --json soak.json
"""

import argparse
import json
import re
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from subprocess import PIPE, Popen
from typing import Any

import psutil

from emulation.held.client import ControlError, ask
from emulation.held.messages import ListLinks, SetLink, StartTraffic
from tests.browser import BROWSERS, DRIVERS, FLAGS, found, needs_browser

OFAN = (sys.executable, "-P", "-m", "ofan")
EXPERIMENT = Path(__file__).resolve().parents[2] / "experiments" / "mininet_k4.toml"
FLAP_SECONDS = 10.0
DOWN_SECONDS = 3.0
SAMPLE_SECONDS = 15.0
START_SECONDS = 120.0
# Caches and the memory that allocators keep grow at first, by less and less: a leak goes on.
WARM = 0.1
GROWTH = 0.05
GROWTH_BYTES = 4 << 20
UNACCOUNTED = re.compile(r"(-?\d+) unaccounted for")
# After a run that was given up, or none at all, a moment's pause: this is no flood of commands.
PAUSE_SECONDS = 1.0
USAGE = 2


@dataclass(frozen=True, slots=True)
class Sample:
    """One process at one moment."""

    seconds: float
    rss_bytes: int
    descriptors: int
    threads: int


@dataclass(slots=True)
class Soak:
    """The results; `complaints` is empty where everything held."""

    minutes: float
    runs: int = 0
    packets: int = 0
    flaps: int = 0
    frames: int = 0
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)


class Loop(threading.Thread):
    """A step that is done again and again until the end; an error in it is a complaint."""

    def __init__(self, soak: Soak, end: threading.Event, step: Any) -> None:
        super().__init__(daemon=True)
        self._soak = soak
        self._end = end
        self._step = step

    def run(self) -> None:
        """Repeat the step."""
        while not self._end.is_set():
            self._once()

    def _once(self) -> None:
        try:
            self._step(self._soak, self._end)
        except ControlError as error:
            self._soak.complaints.append(f"{self._step.__name__}: {error}")
            self._end.wait(PAUSE_SECONDS)


def send(soak: Soak, _end: threading.Event) -> None:
    """Run the collective once, and look at its accounts."""
    said = ask(StartTraffic(wait=True))
    soak.runs += 1
    unaccounted = UNACCOUNTED.search(said)
    if not unaccounted or int(unaccounted[1]):
        soak.complaints.append(f"run {soak.runs}: {said}")

    sent = re.search(r"(\d+) packets sent", said)
    soak.packets += int(sent[1]) if sent else 0


class Flapper:
    """Breaks and mends a random link."""

    __name__ = "flap"

    def __init__(self, seed: int) -> None:
        self._draw = Random(seed)
        self._names = [link.link for link in ask(ListLinks())]

    def __call__(self, soak: Soak, end: threading.Event) -> None:
        name = self._draw.choice(self._names)
        ask(SetLink(name=name, up=False))
        end.wait(DOWN_SECONDS)
        ask(SetLink(name=name, up=True))
        soak.flaps += 1
        end.wait(FLAP_SECONDS - DOWN_SECONDS)


def sample(soak: Soak, processes: dict[str, psutil.Process], begun: float) -> None:
    """Write down every process, and who is no more."""
    for name, process in processes.items():
        if seen := reading(process, begun):
            soak.samples.setdefault(name, []).append(seen)
        else:
            soak.complaints.append(f"{name} is no more")


def reading(process: psutil.Process, begun: float) -> Sample | None:
    """Return a process's use of resources now; None where it has ended."""
    try:
        with process.oneshot():
            return Sample(
                seconds=time.monotonic() - begun,
                rss_bytes=process.memory_info().rss,
                descriptors=process.num_fds(),
                threads=process.num_threads(),
            )
    except psutil.Error:
        return None


def family(label: str, process: Popen[str]) -> dict[str, psutil.Process]:
    """Return a process and its children by names that tell them apart."""
    parent = psutil.Process(process.pid)
    children = parent.children(recursive=True)
    return {label: parent} | {f"{label} {child.name()} {child.pid}": child for child in children}


def judge(soak: Soak) -> None:
    """Compare the last third of every process's samples with those after it had warmed up."""
    for name, samples in soak.samples.items():
        warm = samples[int(len(samples) * WARM) :]
        third = max(1, len(warm) // 3)
        for quantity in ("rss_bytes", "descriptors", "threads"):
            before = median(getattr(entry, quantity) for entry in warm[:third])
            after = median(getattr(entry, quantity) for entry in warm[-third:])
            slack = max(GROWTH * before, GROWTH_BYTES if quantity == "rss_bytes" else 2)
            if after > before + slack:
                soak.complaints.append(
                    f"{name}: {quantity} grew from {before:,.0f} to {after:,.0f}"
                )


@contextmanager
def command(*arguments: str) -> Iterator[Popen[str]]:
    """Run an `ofan` command until the end of the block."""
    with Popen([*OFAN, *arguments], stdout=PIPE, text=True, bufsize=1) as process:
        try:
            yield process
        finally:
            process.terminate()


def wait_for_network(process: Popen[str]) -> None:
    """Return when the network takes commands; raises SystemExit where it never does."""
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit and process.poll() is None:
        with suppress(ControlError):
            ask(ListLinks())
            return

        time.sleep(PAUSE_SECONDS)

    raise SystemExit("the network never came up")


@contextmanager
def page(address: str, profile: str) -> Iterator[Any]:
    """Open a page in Chromium."""
    from selenium import webdriver  # as heavy as the browser

    options = webdriver.ChromeOptions()
    options.binary_location = found(BROWSERS) or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)

    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(found(DRIVERS)))
    try:
        chrome.get(address)
        yield chrome
    finally:
        chrome.quit()


def address_of(process: Popen[str]) -> str:
    """Return the address that `ofan serve` prints."""
    assert process.stdout
    for line in process.stdout:
        if address := re.search(r"http://\S+", line):
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return address[0]

    raise SystemExit("`ofan serve` ended at once")


def soak(minutes: float, seed: int) -> Soak:
    """Keep everything busy for so long."""
    result = Soak(minutes)
    end = threading.Event()
    held = ("emulate", str(EXPERIMENT), "--network", "mininet", "--set", "policies=ofan", "--hold")
    with tempfile.TemporaryDirectory() as folder:
        results = str(Path(folder) / "results")
        with command(*held, "--output", results) as network:
            assert network.stdout
            threading.Thread(target=network.stdout.read, daemon=True).start()
            wait_for_network(network)
            with command("serve") as server, page(address_of(server), f"{folder}/p") as browser:
                loops = [Loop(result, end, step) for step in (send, Flapper(seed))]
                for loop in loops:
                    loop.start()

                watch(result, family("emulate", network) | family("serve", server), browser)
                end.set()
                for loop in loops:
                    loop.join()

    judge(result)
    return result


def watch(result: Soak, processes: dict[str, psutil.Process], browser: Any) -> None:
    """Sample everything until the time is over, and see that the page still moves."""
    begun = time.monotonic()
    before = ""
    while time.monotonic() < begun + result.minutes * 60:
        sample(result, processes, begun)
        shown = browser.find_element("tag name", "body").text
        result.frames += shown != before
        before = shown
        time.sleep(SAMPLE_SECONDS)

    still = len(next(iter(result.samples.values()))) - result.frames
    # Between two runs of the collective a sample may find nothing new to show.
    if still > result.frames:
        result.complaints.append(f"the page stood still at {still} of its samples")


def table(result: Soak) -> str:
    """Return the results as a table: of every kind, the process that has grown most."""
    lines = [
        f"{result.minutes:g} minutes: {result.runs} runs, {result.packets:,} packets,"
        f" {result.flaps} flaps; the page changed at {result.frames} looks",
        "| process | how many | MiB at first / at last | descriptors | threads |",
        "|---|---|---|---|---|",
    ]
    kinds: dict[str, list[list[Sample]]] = defaultdict(list)
    for name, samples in result.samples.items():
        kinds[name.rpartition(" ")[0] or name].append(samples[int(len(samples) * WARM) :])

    for kind, all_samples in kinds.items():
        worst = max(all_samples, key=lambda warm: warm[-1].rss_bytes - warm[0].rss_bytes)
        first = worst[0]
        last = worst[-1]
        lines.append(
            f"| {kind} | {len(all_samples)} |"
            f" {first.rss_bytes / 2**20:.1f} / {last.rss_bytes / 2**20:.1f} |"
            f" {first.descriptors} / {last.descriptors} | {first.threads} / {last.threads} |"
        )

    return "\n".join(lines)


def main() -> int:
    """Soak for the minutes of the command line; 1 where something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write every sample to this file")
    options = parser.parse_args()
    if not (found(BROWSERS) and found(DRIVERS)):
        sys.stderr.write(f"the soak looks at the page: {needs_browser.kwargs['reason']}\n")
        return USAGE

    result = soak(options.minutes, options.seed)
    sys.stdout.write(f"{table(result)}\n" + "".join(f"{line}\n" for line in result.complaints))
    if options.json:
        options.json.write_text(json.dumps(asdict(result)))

    return bool(result.complaints)


if __name__ == "__main__":
    sys.exit(main())
