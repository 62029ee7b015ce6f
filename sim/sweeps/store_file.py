"""The SQLite file of a store: its tables, its opening, and checks for damage."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from fattree.records.record import Record

# SQLite's user_version: raise it when the tables change. Before 2, runs need not have sums.
FORMAT = 2
READABLE = (1, FORMAT)
# The wait for other writers before it is an error.
BUSY_SECONDS = 60
# SQLite's file format, 1.3: constants of all our stores. UTF-8, no vacuum, no id.
HEADER_BYTES = 100
MAGIC = b"SQLite format 3\0"
FIXED = (
    ("reserved bytes", 20, {b"\0"}),
    ("payload fractions", 21, {bytes((64, 32, 32))}),
    # 0 as long as the tables are in the log beside it: a sweep that was killed early leaves that.
    ("schema format", 44, {bytes((0, 0, 0, 4)), bytes(4)}),
    ("text encoding", 56, {bytes((0, 0, 0, 1)), bytes(4)}),
    ("vacuum", 64, {bytes(4)}),
    ("application", 68, {bytes(24)}),
)
REMEDY = (
    "keep it; `sqlite3 FILE .recover | sqlite3 NEW` saves what can be read,"
    " and a sweep into NEW runs only what is missing"
)
EMPTY = "holds no runs: if a sweep was stopped as it began, the same command begins it again"

TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    scenario TEXT NOT NULL,
    record TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS wanted (
    key TEXT PRIMARY KEY,
    place INTEGER NOT NULL,
    balancer TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS sums (
    key TEXT PRIMARY KEY,
    sum TEXT NOT NULL
);
"""


def _column(name: str) -> str:
    """Return a field of records as a column of the view."""
    value = f"json_extract(record, '$.{name}')"
    # JSON has no infinity, so that records have a text in its place (`store.plain`): here it is a
    # number again.
    if Record.model_fields[name].annotation is float:
        value = f"CASE {value} WHEN 'inf' THEN 9e999 ELSE {value} END"

    return f"{value} AS {name}"


# A new version may have more columns.
VIEW = f"""
DROP VIEW IF EXISTS results;
CREATE VIEW results AS SELECT
    {", ".join(map(_column, Record.model_fields))},
    key, model, finished
FROM runs;
PRAGMA user_version = {FORMAT};
"""
# The columns that runs of an earlier format lack, before its number changes.
ADDED_SUMS = f"""
INSERT OR IGNORE INTO sums SELECT key, run_sum(key, scenario, record) FROM runs
WHERE (SELECT user_version FROM pragma_user_version) < {FORMAT};
"""


def version_of(database: sqlite3.Connection) -> int:
    """Return the format of a store's tables, 0 of a file that is not made yet."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return int(version)


def sum_of(*texts: str) -> str:
    """Return the checksum of a run's texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _damage(path: Path, database: sqlite3.Connection) -> str | None:
    """Return the damage of a store's file, None without any."""
    # SQLite believes most of its header, and the quick check looks at pages only. All constants of
    # our header are compared: the rest are counters that change no row.
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)

    wrong = [
        name
        for name, offset, allowed in FIXED
        if header and header[offset : offset + len(next(iter(allowed)))] not in allowed
    ]
    if wrong and header.startswith(MAGIC):
        return f"header: {wrong[0]}"

    try:
        (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)

    # Of several lines the last names the damage.
    return None if said == "ok" else str(said).splitlines()[-1]


def _made_as(database: sqlite3.Connection, schema: str = "") -> set[tuple[str, str]]:
    """Return how a database's table of runs is made, and its triggers; first by a schema."""
    database.executescript(schema)
    rows = database.execute(
        "SELECT type, sql FROM sqlite_master WHERE name = 'runs' OR type = 'trigger'"
    )
    return {(kind, " ".join(sql.split())) for kind, sql in rows}


def opened(path: Path, create: bool) -> sqlite3.Connection:
    """Open a store's file, and bring its tables to this version, or make them, with `create`.

    Raises sqlite3.Error and OSError, one line.
    """
    if not create and not path.is_file():
        raise OSError("no such store of runs")

    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, timeout=BUSY_SECONDS)
    if damage := _damage(path, database):
        database.close()
        complaint = "no store of runs, or damaged" if "not a database" in damage else "damaged"
        raise sqlite3.DatabaseError(f"{complaint} ({damage}): {REMEDY}")

    version = version_of(database)
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    # A new file has version 0 and no tables; an unfinished file may have its first tables.
    if version not in (0, *READABLE):
        database.close()
        raise sqlite3.DatabaseError("not a store of runs of this version")

    if not (tables or create):
        database.close()
        raise sqlite3.DatabaseError(EMPTY)

    # A view of that name may have rows without end, and triggers may change anything.
    with closing(sqlite3.connect(":memory:")) as ours:
        is_ours = not tables or _made_as(database) == _made_as(ours, TABLES)

    if not is_ours:
        database.close()
        raise sqlite3.DatabaseError("not a store of runs: its tables are made in another way")

    # Readers do not wait for the writer, and a commit need not reach the disk at once: after a
    # power failure the last runs may be missing, but the file is whole.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    if create:
        database.create_function("run_sum", 3, sum_of, deterministic=True)
        # All of it or nothing: a killed process leaves an empty file.
        database.executescript(f"BEGIN IMMEDIATE; {TABLES} {ADDED_SUMS} {VIEW} COMMIT;")

    return database
