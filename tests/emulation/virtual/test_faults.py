"""Faults around a run, without root: a full disk, an interrupt at any time, a storm of
failures.
"""

import compileall
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from emulation.virtual.fabric import VirtualFabric
from fattree.demand import traffic
from fattree.experiment.model import (
    Collective,
    Controller,
    Fabric,
    FailureEvent,
    Failures,
    Scenario,
)
from fattree.routes.stranded import cut_off
from fattree.routes.wecmp import LinkState
from fattree.shape.addressing import link_name
from fattree.shape.topology import FatTree
from fattree.units import NS_PER_SECOND
from sim.sweeps.store import Store

EXPERIMENT = """
name = "faults"
[fabric]
k = 4
[collective]
message_bytes = 65_536
"""
SWEEP = """
name = "full"
policies = ["host_pkt", "ofan"]
seeds = 50
[fabric]
k = 4
[sweep]
"collective.message_bytes" = [4096, 65_536]
"""
INTERRUPTED, BAD_INPUT = 130, 2
ROOT = Path(__file__).resolve().parents[3]


def ofan(*arguments: str, most_bytes: int | None = None) -> subprocess.Popen[str]:
    """Start `ofan` as a process; no file that it writes may be longer than `most_bytes`."""
    limit: list[str] = []
    if most_bytes is not None:
        # Python keeps half of a compiled module where a file may not be longer, and the next
        # process cannot read it: "marshal data too short".
        for package in ("controller", "emulation", "fattree", "hostagent", "p4tools", "sim"):
            compileall.compile_dir(ROOT / package, quiet=1)

        compileall.compile_file(ROOT / "ofan.py", quiet=1)
        # A function between fork and exec would run beside gRPC's threads of other tests, which
        # write to the error output that this test reads.
        limit = ["prlimit", f"--fsize={most_bytes}"]

    pipe = subprocess.PIPE
    # The same of whatever else it imports.
    command = [*limit, sys.executable, "-B", "-m", "ofan", *arguments]
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "faults.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.mark.parametrize(
    "most_bytes",
    [
        pytest.param(300, marks=pytest.mark.slow),
        3_000,
        pytest.param(20_000, marks=pytest.mark.slow),
    ],
)
def test_a_full_disk_loses_no_result_and_leaves_no_half_folder(
    experiment: Path, tmp_path: Path, most_bytes: int
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "run.log").write_text("of an older run")
    out, err = ofan(
        "emulate", str(experiment), "--json", "--output", str(folder), most_bytes=most_bytes
    ).communicate()
    *_, last = err.strip().splitlines()
    assert last == f"ofan: cannot write results to {folder}: File too large"
    assert "Traceback" not in err
    shown = json.loads(out)
    assert shown["folder"] is None and shown["records"][0]["cct_ps"] > 0, (
        "what was computed is shown"
    )
    assert [path.name for path in folder.iterdir()] == ["run.log"]
    assert (folder / "run.log").read_text() == "of an older run"


@pytest.mark.slow
def test_a_full_disk_ends_a_sweep_with_what_is_finished_kept(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(SWEEP)
    arguments = (
        "sim",
        "sweep",
        str(sweep),
        "--jobs",
        "1",
        "--store",
        str(tmp_path / "runs.sqlite"),
    )
    # The names of all runs come first: 80 KB.
    limited = ofan(*arguments, most_bytes=200_000)
    _, err = limited.communicate()
    assert limited.returncode == BAD_INPUT and "Traceback" not in err
    with Store(tmp_path / "runs.sqlite") as store:
        assert 0 < len(store.runs()) < 200

    again = ofan(*arguments)
    again.communicate()
    assert again.returncode == 0
    with Store(tmp_path / "runs.sqlite") as store:
        assert len(store.runs()) == 200


@pytest.mark.slow
def test_an_interrupt_at_any_time_is_one_line_and_leaves_nothing(
    experiment: Path, tmp_path: Path
) -> None:
    """From the moment on at which our code is in charge, through imports, compilation, the run and
    the plots.
    """
    started = time.monotonic()
    whole = ofan("emulate", str(experiment), "--output", str(tmp_path / "whole"))
    whole.communicate()
    length_s = time.monotonic() - started
    rng = np.random.default_rng(1)
    for number, moment in enumerate(rng.uniform(0.15, 0.95, 12)):
        folder = tmp_path / f"results{number}"
        process = ofan("emulate", str(experiment), "--output", str(folder))
        time.sleep(moment * length_s)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        if process.returncode == 0:
            continue
        assert "Traceback" not in err
        if (
            process.returncode != -signal.SIGINT
        ):  # which is how it ends before any code of ours can print a line
            assert (
                process.returncode == INTERRUPTED
                and err.strip().splitlines()[-1] == "ofan: interrupted"
            ), moment
        files = sorted(os.listdir(folder)) if folder.exists() else []
        assert files in ([], sorted(os.listdir(tmp_path / "whole"))), "all of it, or nothing"


def storm(tree: FatTree, links: int, seed: int) -> tuple[FailureEvent, ...]:
    """Return so many failures within a second of virtual time that leave every host a path."""
    rng = np.random.default_rng(seed)
    while True:
        chosen = rng.choice(tree.links, links, replace=False)
        flows = traffic.flows(
            Scenario(fabric=Fabric(k=tree.k), collective=Collective(matrix="all_to_all"))
        )
        if not len(cut_off(tree, LinkState.without(tree, frozenset(chosen.tolist())), flows)):
            times = rng.uniform(0.2, 1.2, links) * NS_PER_SECOND
            return tuple(
                FailureEvent(link=link_name(tree, int(link)), down_ns=down_ns)
                for link, down_ns in zip(chosen, times, strict=True)
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    "controller", [Controller(), Controller(detection="probe")], ids=["announced", "probe"]
)
def test_30_links_that_fail_within_a_second_are_all_routed_around(controller: Controller) -> None:
    """The rates of Mininet runs in virtual time: k = 8, 256 links, 41 packets a second and host."""
    tree = FatTree(8)
    chosen = Scenario(
        fabric=Fabric(k=8, rate_gbps=0.0016, latency_ns=6e6),
        collective=Collective(message_bytes=60 * 4096),
        failures=Failures(events=storm(tree, 30, 3)),
        controller=controller,
    )
    fabric = VirtualFabric(chosen)
    outcome = fabric.run()
    assert len(fabric.controller.failed) == 30
    assert outcome.accounts.unaccounted == 0 and outcome.accounts.unrouted == 0
    for switch, session in enumerate(fabric.sessions):
        read = {
            (entry.table, entry.key): (entry.action, entry.arguments) for entry in session.read()
        }
        assert read == dict(fabric.controller.entries(switch))


@pytest.mark.slow
def test_a_link_that_flaps_at_10_hz_costs_little_when_it_is_damped() -> None:
    events = tuple(
        FailureEvent(link="agg0_0-core0_0", down_ns=1e8 * n, up_ns=1e8 * n + 5e7)
        for n in range(2, 22)
    )
    runs = []
    for controller in (Controller(), Controller(damping_half_life_us=10**6)):
        failures = Failures(events=events)
        fabric = VirtualFabric(
            Scenario(
                fabric=Fabric(k=4, rate_gbps=0.0016, latency_ns=6e6),
                collective=Collective(message_bytes=110 * 4096),
                failures=failures,
                controller=controller,
            )
        )
        outcome = fabric.run()
        assert outcome.accounts.unaccounted == 0
        runs.append((sum(change.updates for change in fabric.installations), outcome.accounts.lost))
    (plain, lost), (damped, lost_damped) = runs
    assert damped < plain / 3
    assert lost_damped <= lost
