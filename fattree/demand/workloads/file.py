"""A workload as a file: Parquet, a row for each transfer or computation.

    source, destination   ranks from 0; equal for a computation
    bytes                 of a transfer, 0 for a computation
    compute_ps            how long a computation takes, 0 for a transfer
    after                 the rows (from 0) that must be complete at the source before
    nic                   (may be missing) the NIC of a transfer at both ends, from 0: its plane

The file's metadata under "ofan" is JSON: the workload's description (`about`), how many GPUs a
server has, and by how much bytes and computations were divided (`scale`).
"""

import io
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import TypeAdapter, ValidationError

from fattree.demand.workloads.graph import Graph, refuse_many
from fattree.errors import TrafficError
from fattree.files.parquet import ParquetError, read_parquet
from fattree.files.text_file import MOST_BYTES, read_bytes
from fattree.files.whole_file import write_whole

if TYPE_CHECKING:
    import polars as pl

KEY = "ofan"
NUMBERS = ("source", "destination", "bytes", "compute_ps")
COLUMNS = (*NUMBERS, "after")
NIC = "nic"
# A hundred days in ps would still leave room for a run in int64.
MOST_PS = 10**18
MOST_SIZE = 2**53
MOST_NICS = 1000


@dataclass(frozen=True, slots=True)
class About:
    """The metadata of a workload beside its graph; `ranks` counts those that do nothing, too.

    `in_turn` is the graph's: writing replaces any other value.
    """

    about: str = ""
    ranks: int = 0
    gpus_per_server: int = 1
    scale: int = 1
    in_turn: bool = False


def write_workload(path: Path, graph: Graph, about: About) -> None:
    """Write a workload that can be read again, or leave no new file.

    Raises TrafficError for a workload that is too large to be read, OSError.
    """
    content = _packed(graph, about)
    if len(content) > MOST_BYTES:
        raise TrafficError(f"{path}: would have more than {MOST_BYTES >> 20} MiB")

    write_whole(path, content)


def _packed(graph: Graph, about: About) -> bytes:
    """Return the content of a workload's file."""
    import polars as pl

    offset, awaited = graph.after()
    rows = np.repeat(np.arange(len(graph)), np.diff(offset))
    waits = pl.DataFrame({"row": rows, "after": awaited}).group_by("row").agg("after")
    frame = pl.DataFrame(
        {
            "row": np.arange(len(graph)),
            "source": graph.source,
            "destination": graph.destination,
            "bytes": graph.size,
            "compute_ps": graph.compute_ps,
        }
    ).join(waits, on="row", how="left", maintain_order="left")

    # A failed write is an OSError, which Polars' own writing hides.
    data = io.BytesIO()
    said = replace(about, in_turn=graph.in_turn)
    metadata = {KEY: TypeAdapter(About).dump_json(said).decode()}
    nics = {} if graph.nic is None else {NIC: graph.nic}
    frame.with_columns(pl.col("after").fill_null([])).select(*COLUMNS).with_columns(
        pl.Series(name, column) for name, column in nics.items()
    ).write_parquet(data, metadata=metadata)
    return data.getvalue()


def read_workload(path: str) -> tuple[Graph, About]:
    """Read a workload; raises TrafficError."""
    return _parsed(read_bytes(path, TrafficError), path)


# Several networks and load balancers ask for the same file again and again.
@lru_cache(maxsize=2)
def _parsed(content: bytes, path: str) -> tuple[Graph, About]:
    import polars as pl

    try:
        ((frame, metadata),) = read_parquet([content])
        about = TypeAdapter(About).validate_json(metadata.get(KEY, ""))
        schema = _schema(has_nics=NIC in frame.columns)
        frame = frame.select(*schema).cast(schema)
    except ValidationError:
        raise TrafficError(f"{path}: not a workload of `ofan workload`: no metadata") from None
    except (pl.exceptions.PolarsError, ParquetError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TrafficError(f"{path}: not a workload of `ofan workload`: {reason}") from None

    # Some casts do nothing, without a word.
    if frame.schema != schema:
        raise TrafficError(f"{path}: not a workload of `ofan workload`: columns of other types")

    refuse_many(len(frame))
    if sum(frame.null_count().row(0)):
        raise TrafficError(f"{path}: a value is missing")

    lengths = frame["after"].list.len().to_numpy().astype(np.int64)
    awaited = frame["after"].explode(empty_as_null=False).to_numpy().astype(np.int64)
    source, destination, size, compute_ps = (frame[name].to_numpy() for name in NUMBERS)
    graph = Graph(
        source,
        destination,
        size,
        compute_ps,
        waiting=np.repeat(np.arange(len(frame)), lengths),
        awaited=awaited,
        in_turn=about.in_turn,
        nic=frame[NIC].to_numpy() if NIC in schema else None,
    )
    check(graph, about, path)
    return graph, about


def _schema(has_nics: bool) -> "pl.Schema":
    """Return the columns with their types."""
    import polars as pl

    numbers = dict.fromkeys(NUMBERS, pl.Int64())
    nics = {NIC: pl.Int64()} if has_nics else {}
    return pl.Schema({**numbers, "after": pl.List(pl.Int64), **nics})


def check(graph: Graph, about: About, path: str) -> None:
    """Raise TrafficError for a graph that no network can run, naming the row."""
    is_sent = graph.size > 0
    nic = np.zeros(len(graph), dtype=np.int64) if graph.nic is None else graph.nic
    in_order = (
        ("has ranks below 0", (graph.source < 0) | (graph.destination < 0)),
        (
            f"has ranks above {about.ranks - 1}",
            np.maximum(graph.source, graph.destination) >= about.ranks,
        ),
        ("has fewer than 0 bytes, or more than 2^53", (graph.size < 0) | (graph.size > MOST_SIZE)),
        (
            "takes less than no time, or more than 10^18 ps",
            (graph.compute_ps < 0) | (graph.compute_ps > MOST_PS),
        ),
        ("sends bytes from a rank to itself", is_sent & (graph.source == graph.destination)),
        ("sends no bytes", ~is_sent & (graph.source != graph.destination)),
        ("both sends and computes", is_sent & (graph.compute_ps > 0)),
        (f"has a NIC below 0, or above {MOST_NICS - 1}", (nic < 0) | (nic >= MOST_NICS)),
    )
    for problem, where in in_order:
        if where.any():
            raise TrafficError(f"{path}: row {int(np.argmax(where))} {problem}")

    if not is_sent.any():
        raise TrafficError(f"{path}: nothing is sent")

    beyond = (graph.awaited < 0) | (graph.awaited >= len(graph))
    if beyond.any():
        row = int(graph.waiting[np.argmax(beyond)])
        raise TrafficError(f"{path}: row {row} waits for a row that does not exist")

    host = graph.source[graph.waiting]
    awaited = graph.awaited
    remote = (graph.source[awaited] != host) & (graph.destination[awaited] != host)
    if remote.any():
        row = int(graph.waiting[np.argmax(remote)])
        raise TrafficError(
            f"{path}: row {row} waits for row {int(awaited[np.argmax(remote)])}, "
            f"of which rank {int(graph.source[row])} cannot know when it is complete"
        )
