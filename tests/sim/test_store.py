import json
import math
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import ofan_p4
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario
from fattree.records.record import Record, described
from sim.errors import StoreError
from sim.sweeps import store as module
from sim.sweeps.store import SCHEMA, Store, run_key
from sim.sweeps.tables import fitting, results_table
from tests.sim.imports import import_closure

NEVER = Failures(convergence_rtt=math.inf)


def record_of(scenario: Scenario, cct_ps: int = 11) -> Record:
    layers = (1.0, 2.0, 3.0, 4.0, 5.0)
    counters = dict.fromkeys(
        ("dropped", "marked", "lost_to_failure", "transmissions", "packet_hops", "redraws"), 0
    )
    queues = {"max_queue_bytes": 5, "max_queue_packets": 1.0, "mean_queue_packets": 0.5}
    by_layer = {
        "max_queue_layers": layers,
        "mean_queue_layers": layers,
        "utilisation_layers": layers,
    }
    result = {
        "cct_ps": cct_ps,
        "bound_ps": 10,
        "increase": cct_ps / 10 - 1,
        "cpu_s": 0.1,
        "max_rss_bytes": 1,
    }
    return Record.model_validate(
        {**described(scenario, "sim", 4096, 1), **counters, **queues, **by_layer, **result}
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "runs" / "x.sqlite") as opened:
        yield opened


def test_a_record_comes_back_as_it_was(store: Store) -> None:
    scenario = Scenario(failures=NEVER)
    store.add(scenario, record_of(scenario))
    assert store.find([run_key(scenario)]) == {run_key(scenario): record_of(scenario)}
    assert store.runs() == [(scenario, record_of(scenario))]


def test_runs_and_rows_have_the_order_of_the_sweep_whatever_is_finished(store: Store) -> None:
    wanted = [
        Scenario(policy=policy, collective=Collective(message_bytes=size))
        for size in (1, 2)
        for policy in ("ofan", "jsq", "flow")
    ]
    store.want({run_key(each): each for each in wanted})
    # Of the first message all but the first load balancer, of the second the last one first.
    for finished in (wanted[2], wanted[1], wanted[5], wanted[3]):
        store.add(finished, record_of(finished))

    assert [scenario for scenario, _ in store.runs()] == [wanted[each] for each in (1, 2, 3, 5)]
    assert store.balancers() == ["Ofan", "JSQ", "Flow"]
    table = results_table(store.runs(), store.balancers())
    assert [row[:2] for row in table.rows] == [
        ("1", "JSQ"),
        ("1", "Flow"),
        ("2", "Ofan"),
        ("2", "Flow"),
    ]


def test_rows_have_the_files_order_where_seeds_are_missing(store: Store) -> None:
    wanted = [Scenario(policy=policy, seed=seed) for seed in (1, 2) for policy in ("ofan", "jsq")]
    store.want({run_key(each): each for each in wanted})
    # The second load balancer of the first seed comes before the first one of the second.
    for finished in wanted[1:3]:
        store.add(finished, record_of(finished))

    table = results_table(store.runs(), store.balancers())
    assert [row[0] for row in table.rows] == ["Ofan", "JSQ"]


def test_another_sweep_into_a_store_has_its_own_order(store: Store) -> None:
    ofan, jsq = Scenario(policy="ofan"), Scenario(policy="jsq")
    for order in ((ofan, jsq), (jsq, ofan)):
        store.want({run_key(each): each for each in order})

    for each in (ofan, jsq):
        store.add(each, record_of(each))
    assert [scenario for scenario, _ in store.runs()] == [jsq, ofan]
    assert store.balancers() == ["JSQ", "Ofan"]


def test_a_store_of_before_there_was_an_order_is_read_as_it_finished(store: Store) -> None:
    store._database.execute("DROP TABLE wanted")
    for policy in ("jsq", "ofan"):
        store.add(Scenario(policy=policy), record_of(Scenario(policy=policy)))
    assert [scenario.policy for scenario, _ in store.runs()] == ["jsq", "ofan"]
    assert store.balancers() == []


def test_a_run_is_kept_once(store: Store) -> None:
    scenario = Scenario()
    store.add(scenario, record_of(scenario, 11))
    store.add(scenario, record_of(scenario, 12))
    assert [record.cct_ps for _, record in store.runs()] == [11]


def test_the_key_ignores_the_name_only() -> None:
    keys = [
        run_key(s)
        for s in (Scenario(), Scenario(seed=2), Scenario(policy="jsq"), Scenario(failures=NEVER))
    ]
    assert len(set(keys)) == 4
    assert run_key(Scenario(name="other")) == keys[0]


def test_the_key_depends_on_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    before = run_key(Scenario())
    monkeypatch.setattr(module, "model_version", lambda: "another")
    assert run_key(Scenario()) != before


MODULE = '''"""Says what."""

LIMIT = "# 5"  # a reason
"""Of what."""


def f(x: int) -> int:
    """Return it.

    Longer.
    """
    # Why.
    return x + 1


class Table:
    key: int = 7
    """How many."""
'''


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("Says what", "Says more", True),
        ("Of what", "Of whom", True),
        ("How many", "How much", True),
        ("key: int = 7", "key: int = 8", False),
        ("    # Why.\n", "", True),
        ("# a reason", "# another", True),
        ("    Longer.\n", "", True),
        ("x + 1", "x + 2", False),
        ('"# 5"', '"# 6"', False),
    ],
)
def test_the_model_is_its_code(old: str, new: str, is_same: bool) -> None:
    assert old in MODULE
    assert (module.code(MODULE.replace(old, new)) == module.code(MODULE)) is is_same
    assert "x + 1" in module.code(MODULE)


def test_the_model_is_all_that_a_run_imports() -> None:
    kept = {str(path.relative_to(module.ROOT)) for path in module.model_files()}
    # How a result is kept, and what is said where there is none.
    others = {"fattree/records/record.py", "sim/errors.py"}
    assert import_closure("sim/runs/engine.py") - kept == others


def test_the_key_depends_on_the_content_of_a_traffic_file(tmp_path: Path) -> None:
    path = tmp_path / "a.cm"
    scenario = Scenario(collective=Collective(matrix="file", file=str(path)))
    keys = {run_key(scenario)}
    for text in ("Nodes 16", "Nodes 128"):
        path.write_text(text)
        keys.add(run_key(scenario))
    assert len(keys) == 3


def test_others_read_while_it_is_open_and_sql_sees_columns(store: Store) -> None:
    scenario = Scenario(seed=7)
    store.add(scenario, record_of(scenario))
    with sqlite3.connect(store.path) as other:
        assert other.execute("SELECT policy, seed, cct_ps FROM results").fetchall() == [
            ("ofan", 7, 11)
        ]
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert json.loads(other.execute("SELECT record FROM runs").fetchone()[0])["k"] == 8
    other.close()


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
    other = sqlite3.connect(tmp_path / "x")
    other.execute("CREATE TABLE mine (a)")
    other.close()
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
    for at in places:
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        try:
            with Store(path, create=False) as opened:
                assert opened.runs() == whole, f"byte {at}"
                accepted.append(at)
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
    at = content.index(f'"{name}": '.encode()) + len(name) + 4
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
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
    """Leave what a writer leaves that is killed after some of the statements that make a store."""
    database = sqlite3.connect(path)
    for statement in SCHEMA.split(";\n")[:steps]:
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


def test_many_swept_keys_are_a_number_where_they_leave_no_room(store: Store) -> None:
    event = FailureEvent(link="edge0_0-agg0_1", down_ns=5)
    sweep = [
        Scenario(failures=Failures(events=events), collective=Collective(message_bytes=size))
        for events in ((), (event,))
        for size in (1, 2)
    ]
    for each in sweep:
        store.add(each, record_of(each))

    runs = store.runs()
    wide, none = fitting(runs, (), width=200)
    assert wide.headings[:3] == ("message_bytes", "events", "load balancer")
    assert not none

    table, lines = fitting(runs, (), width=80)
    assert table.headings[:2] == ("case", "load balancer")
    assert [row[0] for row in table.rows] == ["1", "2", "3", "4"]
    assert table.rows[3][1:] == wide.rows[3][2:]
    assert lines[0] == "case 1: message_bytes 1, events []"
    down = 'link = "edge0_0-agg0_1" down_ns = 5.0 times = 1'
    assert lines[3] == f"case 4: message_bytes 2, events {down}"


def test_what_a_topology_file_says_is_no_column_beside_its_name(store: Store) -> None:
    for hosts, rate in ((2, 100), (4, 400)):
        fabric = Fabric(
            topology=f"{hosts}.topo",
            edges_per_pod=2,
            hosts_per_edge=hosts,
            aggs_per_pod=2,
            rate_gbps=rate,
        )
        scenario = Scenario(fabric=fabric)
        store.add(scenario, record_of(scenario))

    assert results_table(store.runs()).headings[:2] == ("topology", "load balancer")


@pytest.mark.parametrize("folder", ["compiler", "softswitch/native"])
def test_whatever_runs_programs_is_in_the_keys_of_their_runs(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The P4 tools are found where they are installed, which need not be beside the simulator."""
    copy = tmp_path / "ofan_p4"
    shutil.copytree(Path(ofan_p4.__file__).parent, copy)
    spec = ModuleSpec("ofan_p4", None, origin=str(copy / "__init__.py"))
    version = module.p4_version.__wrapped__
    before = version()
    monkeypatch.setattr(module, "find_spec", lambda _name: spec)
    assert version() == before
    with (copy / folder / "__init__.py").open("a") as file:
        file.write("CHANGED = True\n")

    assert version() != before
