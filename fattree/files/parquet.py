"""Parquet of other people's, read so that no file, however damaged, ends the process that asks.

Polars panics at some damage, and at some aborts the whole process, which no `except` catches. So a
process of its own reads (a seventh of a second of CPU), with limits on memory and time, and hands
over the columns in Arrow's format, uncompressed. A checksum in the file would notice
damage, but no attack. A file that promises to unpack to hundreds of times its size is
refused before it is read, and a file that breaks its promise meets the limit on memory.
"""

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from fattree.errors import FabricError
from fattree.files.memory import spare_bytes
from fattree.files.parquet_footer import unpacked_bytes

if TYPE_CHECKING:
    import polars as pl

READER = Path(__file__).with_name("parquet_process.py")
SECONDS = 120
# Where the machine's free memory is unknown.
USUAL_BYTES = 8 * 10**9
MOST_LINE = 1 << 20
# Workloads and results of ours unpack to 75 times their size at most.
MOST_TIMES, ALWAYS_BYTES = 256, 64 << 20
# Addresses that the reading process takes without a file, and for each byte that is promised.
PROCESS_BYTES, TIMES_BYTES = 1 << 30, 8


class ParquetError(FabricError):
    """Parquet that cannot be read; the message does not name the file."""


class Table(NamedTuple):
    """The table of a file, and the metadata of the file."""

    frame: "pl.DataFrame"
    metadata: dict[str, str]


def read_parquet(contents: Sequence[bytes]) -> Iterator[Table]:
    """Yield the table of each content, in order; raises ParquetError at the first that is none."""
    promises = [_promise(content) for content in contents]
    # The error of a refused file comes after the tables before it.
    count = next(
        (index for index, promise in enumerate(promises) if promise.problem), len(promises)
    )
    memory_bytes = PROCESS_BYTES + TIMES_BYTES * sum(
        promise.unpacked for promise in promises[:count]
    )
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(_file(content)) for content in contents[:count]]
            process = stack.enter_context(_reader([file.fileno() for file in files], memory_bytes))
            # Before it is waited for, whatever it does.
            stack.callback(process.kill)
            for _ in files:
                assert process.stdout is not None
                yield _table(process.stdout)
    except OSError as error:
        raise ParquetError(f"cannot be read in a process of its own: {error.strerror}") from None

    if count < len(promises):
        raise ParquetError(promises[count].problem)


class _Promise(NamedTuple):
    """The bytes that a content promises to unpack to, and the problem, empty without any."""

    unpacked: int = 0
    problem: str = ""


def _promise(content: bytes) -> _Promise:
    try:
        unpacked = unpacked_bytes(content)
    except ValueError as error:
        return _Promise(problem=str(error))

    if unpacked <= max(ALWAYS_BYTES, MOST_TIMES * len(content)):
        return _Promise(unpacked)

    return _Promise(
        problem=f"has {len(content):,} bytes and would unpack to {unpacked:,}, more than "
        f"{MOST_TIMES} times as many"
    )


def _file(content: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(content)
    file.seek(0)
    return file


def _reader(descriptors: Sequence[int], memory_bytes: int) -> subprocess.Popen[bytes]:
    limits = (min(spare_bytes() or USUAL_BYTES, memory_bytes), SECONDS)
    return subprocess.Popen(
        [sys.executable, "-I", str(READER), *map(str, (*limits, *descriptors))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=descriptors,
        # One thread does; more would take more memory.
        env={"POLARS_MAX_THREADS": "1"},
    )


def _table(stream: IO[bytes]) -> Table:
    """Read one answer of the process."""
    import polars as pl

    try:
        said = json.loads(stream.readline(MOST_LINE))
    # It has ended, or has had no memory for its answer.
    except ValueError:
        raise ParquetError("no Parquet, or damaged: reading it has failed") from None

    if "error" in said:
        raise ParquetError(said["error"])

    content = stream.read(said["bytes"])
    if len(content) < said["bytes"]:
        raise ParquetError("no Parquet, or damaged: reading it has failed")

    return Table(pl.read_ipc(io.BytesIO(content)), said["metadata"])
