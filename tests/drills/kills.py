"""Kill a command at drawn moments of its run, and look at its remains; then run it again.

    python -m tests.drills.kills mininet serve report sweep --moments 20 --seed 1

A run has a folder and a place for temporary files of its own, and a mark in the environment of all
its processes. Ctrl-C, SIGTERM and SIGKILL take turns. Nothing may be left but results: no process,
no interface, no named network namespace, no temporary file; SIGKILL, which no process can answer,
may leave temporary files and the run folder of Mininet's switches. The run after it must end well,
and leave nothing either.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from emulation.mininet.run_folder import RUN_FOLDER

OFAN = (sys.executable, "-P", "-m", "ofan")
ROOT = Path(__file__).resolve().parents[2]
MARKER = "OFAN_TEST_MARKER"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
END_SECONDS = 30.0
RUN_SECONDS = 600.0
POLL_SECONDS = 0.05
RUN = "run folder"
LEFT_FOLDER = f"{RUN} True"
# The page of `ofan serve` is open for so long before it is closed.
SERVED_SECONDS = 8.0
# The statuses of a run that is asked to end (a shell's numbers for signals among them).
QUIET = {0, 1, 128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM}


@dataclass(frozen=True, slots=True)
class Subject:
    """A command that is killed; `ends` is False where it runs until somebody ends it."""

    arguments: Callable[[Path], Sequence[str]]
    ends: bool = True


SWEEP = """name = "killed"
policies = ["ofan", "jsq", "host_pkt"]
[fabric]
k = 8
[collective]
message_bytes = 1048576
[sweep]
seed = [1, 2, 3, 4, 5, 6, 7, 8]
"""


def _sweep(folder: Path) -> Sequence[str]:
    (folder / "killed.toml").write_text(SWEEP)
    return ("sim", "sweep", "killed.toml", "--jobs", "2", "--store", "runs.sqlite")


SUBJECTS: Mapping[str, Subject] = {
    "mininet": Subject(
        lambda _folder: (
            *("emulate", str(ROOT / "experiments" / "mininet_k4.toml"), "--network", "mininet"),
            *("--policies", "ofan", "--message-bytes", "65536"),
        ),
    ),
    "serve": Subject(
        lambda _folder: ("serve", str(ROOT / "experiments" / "demo_failure.toml")), ends=False
    ),
    "report": Subject(
        lambda _folder: ("report", "--quick", "--figure", "buffer_size", "--output", "page"),
    ),
    "sweep": Subject(_sweep),
}


@dataclass(slots=True)
class Seen:
    """The results of the kills of one command."""

    moments: int = 0
    complaints: list[str] = field(default_factory=list)
    # Temporary files, and run folders, that SIGKILL left.
    files: int = 0


class Running:
    """A command in a folder of its own, and everything that it starts."""

    def __init__(self, subject: Subject, folder: Path) -> None:
        self.marker = uuid.uuid4().hex
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self.log = folder / "log"
        environment = {**os.environ, MARKER: self.marker, "TMPDIR": str(self.temporary)}
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                [*OFAN, *subject.arguments(folder)],
                stdout=said,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )

    def kill(self, number: signal.Signals) -> None:
        """Send a signal as a terminal or a scheduler does: Ctrl-C to all, others to the first."""
        with suppress(ProcessLookupError):
            if number == signal.SIGINT:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)

    def end(self, seconds: float) -> int | None:
        """Return the status, None where it does not end in time, and then end it."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            return None

    def processes(self) -> list[str]:
        """Return the command lines of processes with the mark."""
        marked = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if self.marker.encode() in environment.read_bytes():
                    line = environment.with_name("cmdline").read_bytes()
                    marked.append(line.replace(b"\0", b" ").decode(errors="replace").strip())

        return [line for line in marked if line]


def around() -> dict[str, object]:
    """Return the remains that a run could leave outside of its folder."""
    said = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=False)
    return {
        "interfaces": {line.split(": ")[1].partition("@")[0] for line in said.stdout.splitlines()},
        RUN: RUN_FOLDER.exists(),
        "namespaces": {path.name for path in Path("/run/netns").glob("*")},
    }


def left(running: Running, before: Mapping[str, object]) -> list[str]:
    """Return the remains of a run, beside temporary files; children have a while to end."""
    until = time.monotonic() + END_SECONDS
    while time.monotonic() < until and (running.processes() or around() != before):
        time.sleep(POLL_SECONDS)

    complaints = [f"process {line[:120]}" for line in running.processes()]
    after = around()
    return complaints + [f"{name} {after[name]}" for name in after if after[name] != before[name]]


def temporary_files(running: Running) -> list[str]:
    """Return the temporary files of a run that are there."""
    return sorted(str(path.relative_to(running.temporary)) for path in running.temporary.glob("*"))


def whole(subject: Subject, folder: Path, before: Mapping[str, object]) -> tuple[float, list[str]]:
    """Run a command to its end; return the seconds, and the complaints."""
    begun = time.monotonic()
    running = Running(subject, folder)
    if not subject.ends:
        time.sleep(SERVED_SECONDS)
        running.kill(signal.SIGINT)

    status = running.end(RUN_SECONDS)
    took = time.monotonic() - begun
    said = running.log.read_text(errors="replace")
    complaints = left(running, before) + [f"temporary {name}" for name in temporary_files(running)]
    if status not in ((0,) if subject.ends else QUIET) or "Traceback" in said:
        complaints.append(f"a whole run ended with {status}: {said[-400:]}")

    return took, complaints


def killed(subject: Subject, number: signal.Signals, seconds: float, folder: Path) -> Seen:
    """Kill a run after so many seconds, look, and run it again in the same folder."""
    seen = Seen(1)
    before = around()
    running = Running(subject, folder)
    with suppress(subprocess.TimeoutExpired):
        running.process.wait(seconds)

    running.kill(number)
    status = running.end(END_SECONDS)
    said = running.log.read_text(errors="replace")
    remains = left(running, before)
    files = temporary_files(running)
    if number == signal.SIGKILL:
        seen.files = len(files) + remains.count(LEFT_FOLDER)
        seen.complaints += [line for line in remains if line != LEFT_FOLDER]
    else:
        seen.complaints += remains
        seen.complaints += [f"temporary {name}" for name in files]
        if status not in QUIET or "Traceback" in said:
            seen.complaints.append(f"ended with {status}: {said[-400:]}")

    for name in files:
        subprocess.run(["rm", "-rf", str(running.temporary / name)], check=False)

    seen.complaints += [f"the next run: {line}" for line in whole(subject, folder, before)[1]]
    return seen


def drill(name: str, moments: int, seed: int) -> Seen:
    """Kill one command at so many moments of its run."""
    subject = SUBJECTS[name]
    draw = Random(f"{seed}/{name}")
    seen = Seen()
    with TemporaryDirectory() as folder:
        length, wrong = whole(subject, Path(folder), around())

    seen.complaints += wrong
    for moment in range(moments):
        number = SIGNALS[moment % len(SIGNALS)]
        seconds = draw.uniform(0, length)
        with TemporaryDirectory() as folder:
            result = killed(subject, number, seconds, Path(folder))

        seen.moments += 1
        seen.files += result.files
        seen.complaints += [
            f"{name}, moment {moment}, {number.name} after {seconds:.2f} s: {line}"
            for line in result.complaints
        ]
        sys.stderr.write(f"{name} {moment} {number.name} {seconds:.2f} s: {result.complaints}\n")

    return seen


def main() -> int:
    """Kill the commands of the command line; 1 where one left something."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills.kills", description=__doc__)
    parser.add_argument("subjects", nargs="+", choices=list(SUBJECTS))
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    complaints = []
    for name in options.subjects:
        seen = drill(name, options.moments, options.seed)
        complaints += seen.complaints
        sys.stdout.write(
            f"{name}: {seen.moments} moments, {len(seen.complaints)} complaints,"
            f" {seen.files} temporary files left by SIGKILL\n"
        )

    sys.stdout.write("".join(f"{line}\n" for line in complaints))
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
