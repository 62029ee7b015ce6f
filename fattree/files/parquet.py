"""Parquet of other people's, read so that no file, however damaged, ends the process that asks.

Polars panics at some damage, and at some aborts the whole process, which no `except` sees. So a
process of its own reads (a seventh of a second of CPU), with limits on memory and time, and hands
over what it has understood in Arrow's format, uncompressed. A checksum in the file would notice
damage, but not an intention.
"""

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

import polars as pl

from fattree.errors import FabricError
from fattree.files.memory import spare_bytes

READER = Path(__file__).with_name("parquet_process.py")
SECONDS = 120
# Where the machine does not say what is free.
USUAL_BYTES = 8 * 10**9
MOST_LINE = 1 << 20


class ParquetError(FabricError):
    """Parquet that cannot be read; the message does not name the file."""


class Table(NamedTuple):
    """What a file holds, and what is said of it in its metadata."""

    frame: pl.DataFrame
    metadata: dict[str, str]


def read_parquet(contents: Sequence[bytes]) -> Iterator[Table]:
    """Yield the table of each content, in order; raises ParquetError at the first that is none."""
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(_file(content)) for content in contents]
            process = stack.enter_context(_reader([file.fileno() for file in files]))
            # Before it is waited for, whatever it does.
            stack.callback(process.kill)
            for _ in files:
                assert process.stdout is not None
                yield _table(process.stdout)
    except OSError as error:
        raise ParquetError(f"cannot be read in a process of its own: {error.strerror}") from None


def _file(content: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(content)
    file.seek(0)
    return file


def _reader(descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    limits = (spare_bytes() or USUAL_BYTES, SECONDS)
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
