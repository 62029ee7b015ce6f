"""Nothing of ours is left after a run, after Ctrl-C at any moment, after kill -9 and another run.

Foreign interfaces and processes stay.
"""

import os
import select
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from emulation.mininet.kernel import ip_batch
from emulation.mininet.run_folder import RUN_FOLDER

pytestmark = [pytest.mark.root, pytest.mark.slow]
EXPERIMENT = """
name = "cleaning"
[fabric]
k = 4
rate_gbps = 0.0016
latency_ns = 6e6
[collective]
message_bytes = 65_536
"""
MARKER = "OFAN_TEST_MARKER"
POLL_SECONDS = 0.02


MOMENTS = {
    "while Mininet builds": lambda output: (RUN_FOLDER / "pid").exists(),
    "while switches start": lambda output: (RUN_FOLDER / "logs").exists(),
    "while the controller connects": lambda output: len(list(RUN_FOLDER.glob("*.grpc"))) == 20,
    "while packets fly": lambda output: "the network is up" in output,
    "while it is held": lambda output: "commands from another terminal" in output,
}


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "cleaning.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture
def foreign(namespace):
    """Make a veth with a name of ours and a namespace that are not ours.

    Check in the end that they are untouched.
    """
    ip_batch(["link add e0_0-1 type veth peer name foreign"])
    with subprocess.Popen(["unshare", "-n", "sleep", "1000"]) as sleeper:
        yield
        assert (
            "foreign@e0_0-1"
            in subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout
        )
        assert sleeper.poll() is None
        sleeper.kill()


class Emulation:
    """A running `ofan emulate`; all of its processes carry a marker in their environment."""

    def __init__(self, process, marker):
        self.process = process
        self.marker = marker
        self.output = ""

    def wait_until(self, condition):
        """Read the output until it, or the machine, shows something."""
        os.set_blocking(self.process.stdout.fileno(), False)
        while not condition(self.output) and self.process.poll() is None:
            select.select([self.process.stdout], [], [], POLL_SECONDS)
            with suppress(BlockingIOError):
                self.output += os.read(self.process.stdout.fileno(), 1 << 16).decode()
        assert condition(self.output), self.output

    def processes(self):
        """Return the processes with our marker: command lines."""
        commands = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if self.marker.encode() in environment.read_bytes():
                    commands.append(
                        environment.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode()
                    )
        return commands

    def wait_for_the_last_process(self):
        """Wait until no process with our marker is left (a killed run's end within a moment)."""
        watched = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if self.marker.encode() in environment.read_bytes():
                    watched.append(os.pidfd_open(int(environment.parent.name)))
        for pidfd in watched:
            assert select.select([pidfd], [], [], 10)[0], self.processes()
            os.close(pidfd)


@contextmanager
def emulation(experiment, *options):
    marker = uuid.uuid4().hex
    command = [
        sys.executable,
        "-m",
        "ofan",
        "emulate",
        str(experiment),
        "--network",
        "mininet",
        *options,
    ]
    environment = {**os.environ, MARKER: marker}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    ) as process:
        yield Emulation(process, marker)
        if process.poll() is None:
            process.kill()


def left_behind():
    """Return the traces that an emulation could leave among the machine's own things."""
    interfaces = subprocess.run(
        ["ip", "-o", "link"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    names = {line.split(": ")[1].partition("@")[0] for line in interfaces}
    return {
        "interfaces": names,
        "folder": RUN_FOLDER.exists(),
        "named": set(Path("/run/netns").glob("*")),
    }


def test_a_run_leaves_nothing(foreign, experiment, tmp_path):
    before = left_behind()
    with emulation(experiment, "--output", str(tmp_path / "results")) as running:
        running.wait_until(lambda _output: running.process.poll() is not None)
        assert running.process.wait() == 0, running.output
        assert running.processes() == []
    assert left_behind() == before


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_leaves_nothing(foreign, experiment, moment):
    before = left_behind()
    with emulation(experiment, "--hold") as running:
        running.wait_until(MOMENTS[moment])
        os.killpg(running.process.pid, signal.SIGINT)
        running.process.wait(20)
        running.wait_for_the_last_process()
        assert running.processes() == []
        assert "Traceback" not in running.output + running.process.stdout.read().decode()
    assert left_behind() == before


def test_sigterm_leaves_nothing(foreign, experiment):
    before = left_behind()
    with emulation(experiment, "--hold") as running:
        running.wait_until(MOMENTS["while packets fly"])
        running.process.terminate()
        running.process.wait(20)
        assert running.processes() == []
    assert left_behind() == before


@pytest.mark.parametrize("moment", list(MOMENTS)[1:])
def test_kill_9_alone_leaves_nothing(foreign, experiment, moment):
    before = left_behind()
    with emulation(experiment, "--hold") as running:
        running.wait_until(MOMENTS[moment])
        running.process.kill()
        running.wait_for_the_last_process()
        assert running.processes() == []
    assert left_behind() == before


def test_kill_9_and_another_run_leave_nothing(foreign, experiment, tmp_path):
    before = left_behind()
    with emulation(experiment, "--hold") as running:
        running.wait_until(MOMENTS["while it is held"])
        running.process.kill()
        running.wait_for_the_last_process()
        assert running.processes() == []
    with emulation(experiment, "--output", str(tmp_path / "results")) as running:
        running.wait_until(lambda _output: running.process.poll() is not None)
        assert running.process.wait() == 0, running.output
    assert left_behind() == before


def test_a_second_emulation_is_refused(foreign, experiment):
    with emulation(experiment, "--hold") as first:
        first.wait_until(MOMENTS["while it is held"])
        with emulation(experiment) as second:
            second.wait_until(lambda _output: second.process.poll() is not None)
            assert second.process.wait() == 2
            rest = second.output + second.process.stdout.read().decode()
        assert f"another emulation runs here (process {first.process.pid})" in rest
        assert first.process.poll() is None
        os.killpg(first.process.pid, signal.SIGINT)
        first.process.wait(20)
