"""A whole emulation among planted files runs none of them, and keeps root where it is needed."""

import os
import re
import select
import signal
import subprocess
from pathlib import Path

import pytest

from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.run import run_on
from fattree.experiment.model import Scenario
from hostagent.agents.process import NOBODY
from hostagent.isolation import python_command
from tests.test_isolation import caught, surroundings, trap

pytestmark = pytest.mark.root
__all__ = ["surroundings", "trap"]
CAP_NET_RAW = 1 << 13
EXPERIMENT = """
name = "isolated"
policies = ["ofan"]
[fabric]
k = 2
rate_gbps = 0.0016
latency_ns = 6e6
[collective]
message_bytes = 16_384
"""
SCENARIO = Scenario(
    fabric={"k": 2, "rate_gbps": 0.0016, "latency_ns": 6e6},
    collective={"message_bytes": 16_384},
)


def rights(pid: int) -> tuple[int, int]:
    """Return the user of a process and its capabilities."""
    status = Path(f"/proc/{pid}/status").read_text()
    user = re.search(r"^Uid:\s+(\d+)", status, re.MULTILINE)
    effective = re.search(r"^CapEff:\s+(\w+)", status, re.MULTILINE)
    assert user and effective
    return int(user[1]), int(effective[1], 16)


def test_no_planted_file_runs_in_a_whole_emulation(surroundings, trap, tmp_path):
    file = tmp_path / "x.toml"
    file.write_text(EXPERIMENT)
    arguments = ["emulate", str(file), "--network", "mininet", "--output", str(tmp_path / "out")]
    done = subprocess.run(
        python_command("ofan", *arguments), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert caught(trap) == ""


def test_who_needs_no_root_gives_it_up(tmp_path):
    with mininet_fabric(SCENARIO, Setup(folder=tmp_path / "ofan")) as fabric:
        assert [rights(pid) for pid in fabric.agents.pids] == [(NOBODY, 0)]
        for pid in fabric.switches.processes.pids.values():
            assert rights(pid) == (NOBODY, CAP_NET_RAW)

        assert run_on(fabric).accounts.unaccounted == 0


def test_a_switch_that_is_nobody_ends_with_its_parent(tmp_path):
    with mininet_fabric(SCENARIO, Setup(folder=tmp_path / "ofan")) as fabric:
        pids = fabric.switches.processes.pids.values()
        parent = int(Path(f"/proc/{min(pids)}/stat").read_text().rpartition(")")[2].split()[1])
        watched = [os.pidfd_open(pid) for pid in pids]
        os.kill(parent, signal.SIGKILL)

        # A descriptor of a process is readable when the process has ended.
        for descriptor in watched:
            assert select.select([descriptor], [], [], 10)[0]
            os.close(descriptor)


def test_a_matrix_that_only_its_owner_can_read(tmp_path):
    tmp_path.chmod(0o700)
    file = tmp_path / "private.cm"
    file.write_text("Nodes 2\nConnections 1\n0->1 id 1 start 0 size 16384\n")
    collective = {"matrix": "file", "file": str(file)}
    scenario = Scenario(fabric=SCENARIO.fabric, collective=collective)
    with mininet_fabric(scenario, Setup(folder=tmp_path / "ofan")) as fabric:
        assert len(run_on(fabric).flows) == 1
