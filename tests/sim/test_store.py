"""The records that a store of runs gives back, and their order."""

import json
import math
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario
from sim.sweeps.store import Store, plain, run_key
from sim.sweeps.tables import fitting, results_table, rows
from tests.sim.records import record_of

ROOT = Path(__file__).parents[2]
NEVER = Failures(convergence_rtt=math.inf)


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
    scenarios = [
        Scenario(policy=policy, collective=Collective(message_bytes=size))
        for size in (1, 2)
        for policy in ("ofan", "jsq", "flow")
    ]
    store.want({run_key(case): case for case in scenarios})
    # Of the first message all but the first load balancer, of the second the last one first.
    for finished in (scenarios[2], scenarios[1], scenarios[5], scenarios[3]):
        store.add(finished, record_of(finished))

    assert [scenario for scenario, _ in store.runs()] == [scenarios[case] for case in (1, 2, 3, 5)]
    assert store.balancers() == ["Ofan", "JSQ", "Flow"]

    table = results_table(store.runs(), store.balancers())

    assert [row[:2] for row in table.rows] == [
        ("1", "JSQ"),
        ("1", "Flow"),
        ("2", "Ofan"),
        ("2", "Flow"),
    ]


def test_rows_have_the_files_order_where_seeds_are_missing(store: Store) -> None:
    scenarios = [
        Scenario(policy=policy, seed=seed) for seed in (1, 2) for policy in ("ofan", "jsq")
    ]
    store.want({run_key(scenario): scenario for scenario in scenarios})
    # The second load balancer of the first seed comes before the first of the second.
    for finished in scenarios[1:3]:
        store.add(finished, record_of(finished))

    table = results_table(store.runs(), store.balancers())

    assert [row[0] for row in table.rows] == ["Ofan", "JSQ"]


def test_another_sweep_into_a_store_has_its_own_order(store: Store) -> None:
    ofan, jsq = Scenario(policy="ofan"), Scenario(policy="jsq")
    for order in ((ofan, jsq), (jsq, ofan)):
        store.want({run_key(case): case for case in order})

    for case in (ofan, jsq):
        store.add(case, record_of(case))

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


def test_others_read_while_it_is_open_and_sql_sees_columns(store: Store) -> None:
    scenario = Scenario(seed=7)
    store.add(scenario, record_of(scenario))
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT policy, seed, cct_ps FROM results").fetchall() == [
            ("ofan", 7, 11)
        ]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert json.loads(connection.execute("SELECT record FROM runs").fetchone()[0])["k"] == 8

    connection.close()


def test_many_swept_keys_are_a_number_where_they_leave_no_room(store: Store) -> None:
    event = FailureEvent(link="edge0_0-agg0_1", down_ns=5)
    sweep = [
        Scenario(failures=Failures(events=events), collective=Collective(message_bytes=size))
        for events in ((), (event,))
        for size in (1, 2)
    ]
    for scenario in sweep:
        store.add(scenario, record_of(scenario))

    runs = store.runs()
    wide, none = fitting(runs, (), width=200)

    assert wide.headings[:3] == ("events", "message_bytes", "load balancer")
    assert not none

    table, lines = fitting(runs, (), width=80)

    assert table.headings[:2] == ("case", "load balancer")
    assert [row[0] for row in table.rows] == ["1", "2", "3", "4"]
    assert table.rows[3][1:] == wide.rows[3][2:]
    assert lines[0] == "case 1: events [], message_bytes 1"

    down = 'link = "edge0_0-agg0_1" down_ns = 5.0 times = 1'

    assert lines[3] == f"case 4: events {down}, message_bytes 2"


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


def test_whoever_does_not_read_to_the_end_is_told_nothing(store: Store) -> None:
    scenario = Scenario(failures=NEVER)
    store.add(scenario, record_of(scenario))

    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "ofan", "sim", "results", str(store.path), "--csv", "-"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, cwd=ROOT)
    os.close(write)

    # Click's own way out; the shell does not ask for it.
    assert (done.returncode, done.stderr) == (1, b"")


OLD = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    scenario TEXT NOT NULL,
    record TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE VIEW IF NOT EXISTS results AS SELECT json_extract(record, '$.policy') AS policy FROM runs;
PRAGMA user_version = 1;
"""
NEW = ("events", "degraded", "losses", "scenario_hash")
DEAD = Failures(
    events=(FailureEvent(link="edge0_0-agg0_1", down_ns=5),), convergence_rtt=float("inf")
)


def old_store(path: Path, scenario: Scenario) -> None:
    """Make a store as version 0.4.0 did."""
    record = json.loads(json.dumps(plain(record_of(scenario))))
    for name in NEW:
        del record[name]

    database = sqlite3.connect(path)
    database.executescript(OLD)
    row = (run_key(scenario), "old", json.dumps(plain(scenario)), json.dumps(record))
    with database:
        database.execute("INSERT INTO runs (key, model, scenario, record) VALUES (?, ?, ?, ?)", row)

    database.close()


def test_runs_of_version_0_4_0_are_named_by_their_scenarios(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    scenario = Scenario(failures=DEAD)
    old_store(path, scenario)
    for create in (False, True):
        with Store(path, create=create) as kept:
            assert kept.runs() == [(scenario, record_of(scenario))]
            assert kept.find([run_key(scenario)]) == {run_key(scenario): record_of(scenario)}


def test_the_view_of_an_older_store_gets_new_columns(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    old_store(path, Scenario(failures=DEAD))
    whole = Scenario()
    with Store(path) as kept:
        kept.add(whole, record_of(whole))
        rows = kept._database.execute("SELECT events, convergence_rtt FROM results").fetchall()

    assert rows == [(None, math.inf), ("", 0.0)]


def test_faults_are_columns_of_the_view_and_infinity_is_a_number(store: Store) -> None:
    for scenario in (Scenario(), Scenario(failures=DEAD)):
        store.add(scenario, record_of(scenario))

    query = "SELECT events, convergence_rtt, typeof(convergence_rtt), scenario_hash FROM results"
    first, second = store._database.execute(query).fetchall()
    assert first[:3] == ("", 0.0, "real")
    assert second[:3] == ("edge0_0-agg0_1 down_ns=5", math.inf, "real")
    assert first[3] != second[3]


def test_swept_faults_are_the_columns_of_records(store: Store) -> None:
    scenarios = [Scenario(), Scenario(failures=DEAD)]
    runs = [(scenario, record_of(scenario)) for scenario in scenarios]
    assert [row["events"] for row in rows(runs)] == ["", "edge0_0-agg0_1 down_ns=5"]
    assert not [name for name in rows(runs)[0] if name.startswith("failures.")]
