"""Files that are no whole store: foreign, damaged, or of a writer that was killed."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from fattree.experiment.model import Scenario
from sim.errors import StoreError
from sim.sweeps.store import Store, run_key
from sim.sweeps.store_file import TABLES
from tests.sim.records import record_of


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to look like one" * 20, b""]
)
def test_a_file_that_is_no_store_is_refused_for_reading(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)

    with pytest.raises(StoreError, match="x: "):
        Store(path, create=False)


def test_a_missing_store_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such store"):
        Store(tmp_path / "x", create=False)

    assert not (tmp_path / "x").exists()


def test_another_database_is_left_alone(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "x")
    database.execute("CREATE TABLE mine (a)")
    database.close()

    with pytest.raises(StoreError, match="not a store"):
        Store(tmp_path / "x")


def test_a_flipped_byte_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with Store(path) as opened:
        for seed in range(40):
            scenario = Scenario(seed=seed)
            opened.add(scenario, record_of(scenario))
        whole = opened.runs()

    content = path.read_bytes()
    accepted = []
    places = [*range(100), *range(100, len(content), len(content) // 60)]
    for offset in places:
        damaged = bytearray(content)
        damaged[offset] ^= 0xFF
        path.write_bytes(damaged)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        try:
            with Store(path, create=False) as opened:
                assert opened.runs() == whole, f"byte {offset}"
                accepted.append(offset)
        except StoreError as error:
            assert "\n" not in str(error)

    # Counters, and bytes in the text of a run that JSON and pydantic do not miss.
    assert len(accepted) < len(places) / 2


@pytest.mark.parametrize("name", ["cct_ps", "cpu_s"])
def test_another_digit_in_a_result_is_noticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.sqlite"
    scenario = Scenario(seed=1)
    with Store(path) as opened:
        opened.add(scenario, record_of(scenario))
        key = run_key(scenario)

    content = path.read_bytes()
    offset = content.index(f'"{name}": '.encode()) + len(name) + 4
    path.write_bytes(content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :])
    with Store(path, create=False) as opened:
        for ask in (opened.runs, lambda: opened.find([key])):
            with pytest.raises(StoreError, match=f"damaged .the run {key[:12]}.: .*recover"):
                ask()


def test_runs_of_before_there_were_sums_are_read_and_added_to(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    scenario = Scenario(seed=1)
    with Store(path) as opened:
        opened.add(scenario, record_of(scenario))
        opened._database.execute("DROP TABLE sums")
        opened._database.execute("PRAGMA user_version = 1")
        whole = opened.runs()

    with Store(path, create=False) as opened:
        assert opened.runs() == whole
    # The same run once more, as another process makes it: not a digit of the first one changes.
    with Store(path) as opened:
        opened.add(scenario, record_of(scenario).model_copy(update={"cpu_s": 77.0}))
        assert opened.runs() == whole


def test_a_damaged_store_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with Store(path) as opened:
        opened.add(Scenario(), record_of(Scenario()))

    content = bytearray(path.read_bytes())
    content[56:60] = b"\0\0\0\2"
    path.write_bytes(content)

    with pytest.raises(StoreError, match=r"damaged \(header: text encoding\): .*recover"):
        Store(path, create=False)


def test_a_store_whose_writer_was_killed_at_once_is_opened(tmp_path: Path) -> None:
    """All of it is in the log beside the file then, and the file's header has no tables yet."""
    writer = Store(tmp_path / "a.sqlite")
    for name in ("a.sqlite", "a.sqlite-wal"):
        (tmp_path / name.replace("a", "b", 1)).write_bytes((tmp_path / name).read_bytes())

    writer.close()
    header = (tmp_path / "b.sqlite").read_bytes()[44:48]

    assert header == bytes(4)

    with Store(tmp_path / "b.sqlite") as kept:
        assert kept.runs() == []


def stopped_after(path: Path, steps: int) -> None:
    """Leave the file of a writer that is killed after some of the statements that make a store."""
    database = sqlite3.connect(path)
    for statement in TABLES.split(";\n")[:steps]:
        database.execute(statement)

    database.close()


def test_a_store_whose_writer_was_killed_before_it_was_made_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    stopped_after(path, 0)

    with pytest.raises(StoreError, match=r"holds no runs: .* begins it again"):
        Store(path, create=False)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_store_of_before_whose_writer_was_killed_as_it_made_it_goes_on(
    tmp_path: Path, steps: int
) -> None:
    path = tmp_path / "x.sqlite"
    stopped_after(path, steps)
    with Store(path, create=False) as kept:
        assert kept.runs() == [] and kept.balancers() == []

    with Store(path) as kept:
        kept.add(Scenario(), record_of(Scenario()))
    with Store(path, create=False) as kept:
        assert len(kept.runs()) == 1


@pytest.mark.parametrize("first", range(1, 5))
def test_a_store_is_made_as_a_whole_or_not_at_all(tmp_path: Path, first: int) -> None:
    path = tmp_path / "x.sqlite"
    script = KILLED.format(path=str(path), first=first)
    done = subprocess.run([sys.executable, "-c", script], check=False)

    assert done.returncode == -signal.SIGKILL

    database = sqlite3.connect(path)

    assert database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)

    database.close()


# SQLite asks before each thing that it does.
KILLED = """
import os, signal, sqlite3
from sim.sweeps import store

connect, steps = sqlite3.connect, []

def ask(action, name, value, *_):
    is_table = action in (sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_VIEW)
    if is_table or (name == "user_version" and value):
        steps.append(name)
    if len(steps) == {first}:
        os.kill(os.getpid(), signal.SIGKILL)
    return sqlite3.SQLITE_OK

def watched(path, *words, **named):
    database = connect(path, *words, **named)
    if path != ":memory:":
        database.set_authorizer(ask)
    return database

sqlite3.connect = watched
store.Store({path!r})
"""


@pytest.mark.parametrize(
    "hostile",
    [
        "DROP TABLE runs; CREATE VIEW runs AS WITH RECURSIVE r(key, model, scenario, record) AS"
        " (SELECT 1, 1, 1, 1 UNION ALL SELECT * FROM r) SELECT * FROM r",
        "CREATE TRIGGER later AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
    ],
)
@pytest.mark.timeout(60)
def test_tables_made_in_another_way_are_refused(tmp_path: Path, hostile: str) -> None:
    path = tmp_path / "x.sqlite"
    Store(path).close()
    with sqlite3.connect(path) as database:
        database.executescript(hostile)

    database.close()
    for create in (True, False):
        with pytest.raises(StoreError, match="its tables are made in another way"):
            Store(path, create=create)


@pytest.mark.parametrize("statement", ["DELETE FROM sums", "DROP TABLE sums"])
def test_runs_without_their_sums_are_not_believed(tmp_path: Path, statement: str) -> None:
    """A change of a figure can take its sum away, too."""
    path = tmp_path / "x.sqlite"
    scenario = Scenario(seed=1)
    with Store(path) as opened:
        opened.add(scenario, record_of(scenario))
        opened._database.execute(statement)
        opened._database.commit()

    # A sweep that goes on makes no new sums of the runs it finds.
    for create in (False, True, False):
        with Store(path, create=create) as opened:
            for ask in (opened.runs, lambda: opened.find([run_key(scenario)])):
                with pytest.raises(StoreError, match=r"damaged \(the run [0-9a-f]{12}\)"):
                    ask()
