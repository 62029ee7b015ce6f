"""Sweeps of runs that cost nothing: the runs computed, kept and reported."""

import gc
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import dask
import distributed  # noqa: F401
import pytest

import ofan
from fattree.errors import TrafficError
from fattree.experiment.model import Collective, Experiment, Fabric, Scenario
from fattree.records.record import Record
from sim.errors import FailedRunsError, SweepError
from sim.runs import engine
from sim.sweeps import cluster, own_folder
from sim.sweeps.cluster import connected
from sim.sweeps.store import Store
from sim.sweeps.sweeping import sweep
from tests.sim.meeting import WORKERS, run_together

ROOT = Path(__file__).resolve().parents[2]
TINY = Experiment(
    fabric=Fabric(k=4),
    collective=Collective(message_bytes=8192),
    seeds=20,
    policies=("ofan", "rsq"),
)
PATIENCE_S = 300


class Counting:
    """Runs scenarios and counts them; fails at `bad_seed`, is stopped after `stop_after` runs."""

    def __init__(self, bad_seed: int = 0, stop_after: int | None = None) -> None:
        self.ran: list[tuple[str, int]] = []
        self.bad_seed, self.stop_after = bad_seed, stop_after

    def __call__(self, scenario: Scenario) -> Record:
        if scenario.seed == self.bad_seed:
            raise TrafficError("nothing to send")
        if len(self.ran) == self.stop_after:
            raise KeyboardInterrupt
        self.ran.append((scenario.policy, scenario.seed))
        return engine.run(scenario).record


def scenarios(seeds: int) -> list[Scenario]:
    return list(TINY.model_copy(update={"seeds": seeds}).scenarios())


def test_records_come_in_the_order_of_the_scenarios() -> None:
    swept = scenarios(2)
    assert [(r.policy, r.seed) for r in sweep(swept)] == [(s.policy, s.seed) for s in swept]


def test_equal_scenarios_are_computed_once_and_keep_their_names_and_labels() -> None:
    run = Counting()
    first, second = sweep(
        [
            Scenario(name="a", label="first", fabric=Fabric(k=2)),
            Scenario(name="b", label="second", fabric=Fabric(k=2)),
        ],
        run=run,
    )
    assert len(run.ran) == 1
    assert (first.name, second.name) == ("a", "b")
    assert (first.label, second.label) == ("first", "second")
    assert first.cct_ps == second.cct_ps


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    before, after, swept = Counting(stop_after=3), Counting(), scenarios(4)
    kept = f"3 of 8 runs are kept in {tmp_path / 'x'}; the same command goes on"
    with pytest.raises(KeyboardInterrupt, match=re.escape(kept)):
        sweep(swept, store=tmp_path / "x", run=before)
    assert len(sweep(swept, store=tmp_path / "x", run=after)) == 8
    assert sorted(before.ran + after.ran) == sorted((s.policy, s.seed) for s in swept)


def test_an_interrupted_sweep_without_a_store_says_what_is_lost_and_what_would_keep_it() -> None:
    lost = "3 of 8 runs are finished, and lost; `ofan sim sweep --store FILE` keeps them"
    with pytest.raises(KeyboardInterrupt, match=re.escape(lost)):
        sweep(scenarios(4), run=Counting(stop_after=3))


def test_a_failed_run_does_not_stop_the_others(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match="2 of 8 runs failed; ofan, seed 3: nothing to send"):
        sweep(scenarios(4), store=tmp_path / "x", run=Counting(bad_seed=3))
    with Store(tmp_path / "x") as store:
        assert len(store.runs()) == 6


def test_a_traffic_file_that_changes_meanwhile_is_nobodys_result(tmp_path: Path) -> None:
    matrix = tmp_path / "two.cm"
    matrix.write_text("Nodes 16\nConnections 1\n0->1 id 1 start 0 size 8192\n")
    traffic = Collective(matrix="file", file=str(matrix))
    swept = [
        tiny.model_copy(update={"collective": traffic})
        for tiny in TINY.model_copy(update={"seeds": 1}).scenarios()
    ]

    def run(scenario: Scenario) -> Record:
        record = engine.run(scenario).record
        matrix.write_text("Nodes 16\nConnections 1\n0->5 id 1 start 0 size 8192\n")
        return record

    store = tmp_path / "runs.sqlite"
    with pytest.raises(SweepError, match="has changed since the sweep began"):
        sweep(swept, store=store, run=run)

    counting = Counting()
    sweep(swept, store=store, run=counting)
    assert len(counting.ran) == len(swept)


def test_progress_counts_what_was_there(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    sweep(scenarios(1), store=tmp_path / "x")
    sweep(scenarios(2), store=tmp_path / "x", report=lambda *counts: seen.append(counts))
    assert seen == [(2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("tcp://127.0.0.1:9", "tcp://127.0.0.1:9: Connection refused"),
        ("tcp://no.such.host.invalid:8786", "tcp://no.such.host.invalid:8786: "),
        (
            "tpc://127.0.0.1:8786",
            "'tpc://127.0.0.1:8786': expected an address as in tcp://127.0.0.1:8786",
        ),
        ("localhost", "'localhost': expected an address"),
        ("tcp://127.0.0.1:99999", "'tcp://127.0.0.1:99999': expected an address"),
        ("", "'': expected an address"),
    ],
)
def test_a_scheduler_that_is_not_there_is_one_line(
    address: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.sweeps.cluster.CONNECT_SECONDS", 0.5)
    with pytest.raises(SweepError) as error:
        sweep(scenarios(1), scheduler=address)
    assert str(error.value).startswith(f"no Dask scheduler at {why}")
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_scheduler_without_workers_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as idle,
        connected(1, idle.scheduler_address),
    ):
        said = capsys.readouterr().err
    assert said.startswith(f"the Dask scheduler at {idle.scheduler_address} has no workers yet")


def test_our_own_processes_take_nothing_of_the_users_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'trapped')!r}, 'w')")
    for process in ("worker", "nanny", "scheduler", "client"):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__{process.upper()}__PRELOAD", f"['{trap}']")
    with dask.config.set(dask.config.collect(paths=[])), connected(1, None) as client:
        assert client.submit(sum, (1, 2)).result() == 3
        assert dask.config.get("distributed.client.preload") == []
    assert not (tmp_path / "trapped").exists()


def test_what_answers_but_is_no_scheduler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.sweeps.cluster.CONNECT_SECONDS", 0.7)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=greet, args=(listener,), daemon=True).start()
        with pytest.raises(SweepError, match="what answers there is none"):
            sweep(scenarios(1), scheduler=f"tcp://127.0.0.1:{listener.getsockname()[1]}")
    gc.collect()  # Dask forgets its socket


def greet(listener: socket.socket) -> None:
    """Say something that is no Dask message to all who come, until the listener is closed."""
    with suppress(OSError):
        while True:
            with listener.accept()[0] as peer:
                peer.sendall(b"220 mail.example.org ready\r\n")


def file_of(folder: Path, message: str, seeds: int = 20) -> Path:
    path = folder / "tiny.toml"
    path.write_text(
        f'name = "tiny"\npolicies = ["ofan", "rsq"]\nseeds = {seeds}\n[fabric]\nk = 8\n'
        f'[collective]\nmessage_bytes = "{message}"\n'
    )
    return path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "ofan", "sim", *map(str, arguments)]


def finished(store: Path) -> int:
    if not store.exists():
        return 0
    database = sqlite3.connect(store)
    try:
        return int(database.execute("SELECT count(*) FROM runs").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        database.close()


def wait_for(condition, process: subprocess.Popen[bytes]) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        arguments,
        cwd=ROOT,
        start_new_session=True,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def members(group: int) -> int:
    """Return how many processes of a group run."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, number, *_ = path.read_text().rpartition(")")[2].split()
            count += int(number) == group and state != "Z"
    return count


def wait_until_gone(group: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while members(group):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_after_kill_9_in_the_middle_of_200_runs_every_run_is_there_once_and_none_is_computed_twice(
    tmp_path: Path,
) -> None:
    store, file = tmp_path / "x.sqlite", file_of(tmp_path, "1MiB", seeds=100)
    arguments = command("sweep", file, "--jobs", 2, "--store", store)
    with started(*arguments) as process:
        wait_for(lambda: finished(store) >= 60, process)
        process.kill()
        process.wait()
        wait_until_gone(process.pid)
    with Store(store) as kept:
        first = kept.runs()
    again = subprocess.run(arguments, cwd=ROOT, check=True, capture_output=True, text=True)
    with Store(store) as kept:
        runs = kept.runs()
    assert 60 <= len(first) < 190
    assert f"tiny: {len(first)} of 200 runs are there already\n" in again.stderr
    assert [run for run in runs if run in first] == first
    assert len({(record.policy, record.seed) for _, record in runs}) == len(runs) == 200


def lines(stderr: bytes) -> list[str]:
    return [line for line in stderr.decode().splitlines() if line and "compiling" not in line]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files of started processes."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_processes_remove_what_killed_ones_have_left_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folders = [tmp_path / f"{cluster.FOLDERS}{name}" for name in ("killed", "running", "new")]
    killed, running, _ = folders
    for folder in folders:
        (folder / "dask-scratch-space").mkdir(parents=True)

    # As if they had been made long ago.
    for folder in (killed, running):
        os.utime(folder, (0, 0))

    with own_folder.locked(running) as is_ours, cluster.connected(1, None):
        assert is_ours and not killed.exists()
        (new_folder,) = set(tmp_path.iterdir()) - set(folders)
        os.utime(new_folder, (0, 0))
        # The start of another process of ours leaves this process's folder alone.
        own_folder.remove_leftovers(cluster.FOLDERS)
        assert new_folder.exists()

    assert set(tmp_path.iterdir()) == set(folders) - {killed}


def test_a_run_removes_the_flows_that_a_killed_one_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = tmp_path / "ofan-flows-killed"
    killed.mkdir()
    (killed / "run.parquet").touch()
    os.utime(killed, (0, 0))
    arguments = ["--k", "4", "--message-bytes", "8KiB", "--flows", str(tmp_path / "flows.csv")]

    with pytest.raises(SystemExit) as stopped:
        ofan.main(["sim", "run", *arguments])
    assert stopped.value.code == 0
    assert not list(tmp_path.glob("ofan-flows-*"))


# A terminal interrupts all processes; who asks a command to end asks its first process.
@pytest.mark.slow
@pytest.mark.parametrize(("number", "ask"), [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)])
def test_an_end_that_is_asked_for_is_one_line_and_leaves_no_process_or_file(
    number: signal.Signals, ask: Callable[[int, int], None], tmp_path: Path, temporary: Path
) -> None:
    store, file = tmp_path / "x.sqlite", file_of(tmp_path, "16MiB")
    with started(*command("sweep", file, "--jobs", 2, "--store", store)) as process:
        wait_for(lambda: finished(store) >= 2, process)
        ask(process.pid, number)
        _, stderr = process.communicate(timeout=PATIENCE_S)
        wait_until_gone(process.pid)
    assert process.returncode == 130
    (line,) = (line for line in lines(stderr) if " left" not in line)
    kept = rf"ofan: interrupted: \d+ of 40 runs are kept in {store}; the same command goes on"
    assert re.fullmatch(kept, line)
    assert 2 <= finished(store) < 40
    assert list(temporary.rglob("*")) == []


@pytest.mark.slow
@pytest.mark.parametrize("wait_s", [0, 0.3, 1])
@pytest.mark.parametrize(("number", "ask"), [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)])
def test_an_end_while_workers_start_is_one_line_too(
    number: signal.Signals,
    ask: Callable[[int, int], None],
    tmp_path: Path,
    temporary: Path,
    wait_s: float,
) -> None:
    store, file = tmp_path / "x.sqlite", file_of(tmp_path, "16MiB")
    with started(*command("sweep", file, "--jobs", 2, "--store", store)) as process:
        wait_for(lambda: members(process.pid) >= 3, process)
        time.sleep(wait_s)
        ask(process.pid, number)
        _, stderr = process.communicate(timeout=PATIENCE_S)
        wait_until_gone(process.pid)
    (line,) = lines(stderr)
    assert process.returncode == 130 and line.startswith("ofan: interrupted")
    assert list(temporary.rglob("*")) == []


def address_in(file: Path) -> str:
    """Return the address that a scheduler has written down, nothing while it has not."""
    with suppress(OSError, ValueError):
        return str(json.loads(file.read_text())["address"])
    return ""


@pytest.mark.slow
def test_a_scheduler_and_two_workers_in_other_processes_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The scheduler chooses its port and reports it when it listens: a port chosen here might be
    # taken by then, and a machine that is busy with other tests is no reason to give up.
    monkeypatch.setattr("sim.sweeps.cluster.CONNECT_SECONDS", PATIENCE_S)
    file, dask = tmp_path / "scheduler.json", (sys.executable, "-m", "dask")
    here = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
    scheduler = (*dask, "scheduler", *here, "--port", "0", "--scheduler-file", str(file))
    with started(*scheduler) as first:
        wait_for(lambda: address_in(file), first)
        address = address_in(file)
        worker = (*dask, "worker", address, *here, "--no-nanny", "--nthreads", "1")
        with started(*worker), started(*worker):
            with connected(0, address) as client:
                client.wait_for_workers(WORKERS, timeout=PATIENCE_S)
            signed_in = tmp_path / "workers"
            signed_in.mkdir()
            records = sweep(
                scenarios(10),
                store=tmp_path / "x",
                scheduler=address,
                run=partial(run_together, signed_in),
            )
    alone = sweep(scenarios(10))
    assert [record.cct_ps for record in records] == [record.cct_ps for record in alone]
    assert len(list(signed_in.iterdir())) == WORKERS


def test_few_descriptors_are_refused_before_processes_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sim.sweeps.cluster.resource.getrlimit", lambda _: (50, 1024))
    with pytest.raises(SweepError, match=r"--jobs 2 needs about 64 file descriptors, .* 50 here"):
        cluster.refuse_few_descriptors(2)

    cluster.refuse_few_descriptors(0)


def test_a_process_that_ends_as_it_starts_is_one_line() -> None:
    def broken(_function: object) -> None:
        raise OSError("Stream is closed")

    client: Any = SimpleNamespace(run=broken)
    with pytest.raises(FailedRunsError, match="one of 2 processes ended as it started"):
        cluster._quieten(client, 2)
