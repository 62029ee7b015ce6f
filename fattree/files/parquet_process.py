"""The process that reads other people's Parquet (`parquet`): its end ends no other process.

    parquet_process.py MEMORY_BYTES SECONDS DESCRIPTOR...

For each file that is open at a descriptor it writes one line of JSON, and behind it the table in
Arrow's own format, of as many bytes as the line has under `bytes`. It runs by its path, with
nothing of ours.
"""

import io
import json
import os
import resource
import sys

import polars as pl


def limit(memory_bytes: int, seconds: int) -> None:
    """Take no more memory and processor time than that, and leave no dump behind."""
    for which, bound in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, hard = resource.getrlimit(which)
        lower = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(which, (lower, lower))


def answer(content: bytes) -> tuple[dict[str, object], bytes]:
    """Return a file's line of JSON, as an object, and its table."""
    table = io.BytesIO()
    said: dict[str, object] = {}
    try:
        said["metadata"] = pl.read_parquet_metadata(io.BytesIO(content))
        pl.read_parquet(io.BytesIO(content)).write_ipc(table)
    # A panic of Polars' is no Exception.
    except BaseException as error:
        text = str(error).splitlines()
        return {"error": text[0] if text else type(error).__name__, "bytes": 0}, b""

    return {**said, "bytes": table.tell()}, table.getvalue()


def main() -> None:
    """Read the files of the command line."""
    memory_bytes, seconds, *descriptors = map(int, sys.argv[1:])
    limit(memory_bytes, seconds)
    for descriptor in descriptors:
        with os.fdopen(descriptor, "rb") as file:
            said, table = answer(file.read())

        sys.stdout.buffer.write(json.dumps(said).encode() + b"\n" + table)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
