"""The meaning of every column of results, for JSON, CSV and Parquet: the sentences of `Record`.

`python -m pages.columns PAGE` writes the documentation's page.
"""

import sys
from pathlib import Path

from fattree.records.record import Record
from fattree.sentences import sentences

HEAD = """# Every column of results

A run is a row with these columns, the same for all networks: in `--json`, `--csv` and \
`--parquet` of `ofan sim run`, `sweep`, `results` and `ofan emulate`, in `--json` and `--csv` of \
`compare`, in `results.parquet`
of their folders, and as the fields of a `Record` in Python. Counters count packets of the whole \
run. `_ps` is picoseconds. A sweep's rows also have a column for each swept key that is not \
in this table (`fabric.latency_ns`, `jobs.NAME.start_ns`), and rows of several jobs a \
column for each job (`jobs_ps.NAME`).
CSV has a column for each layer, as in `max_queue_layers.E>A`. This page is made from \
`pages/columns.py` (`make reference`).

| column | |
|---|---|
"""


def page() -> str:
    """Return the documentation's page."""
    rows = (f"| `{name}` | {meaning} |\n" for name, meaning in sentences(Record).items())
    return HEAD + "".join(rows)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
