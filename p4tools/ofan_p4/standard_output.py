"""Standard output that is full or closed: its own error, apart from those of other files."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STDOUT = 1


class StdoutError(Exception):
    """Standard output cannot be written to; one line."""


class _Descriptor(io.FileIO):
    """The descriptor of standard output; its errors are StdoutErrors.

    A pipe without a reader is a BrokenPipeError still: that is no fault.
    """

    def write(self, data: Any, /) -> int:
        """Write bytes; return how many were taken."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StdoutError(f"cannot write to stdout: {error.strerror}") from None


@contextmanager
def guarded_stdout() -> Iterator[None]:
    """Let writing to standard output raise StdoutError where it fails; flush at the end.

    After an error the rest goes nowhere, so that Python's own flush at its end fails no more. A
    closed standard output is refused at once: the next file that is opened would take its place.
    """
    is_closed = sys.stdout is None
    _fill_closed_descriptors()
    if is_closed:
        raise StdoutError("cannot write to stdout: it is closed")

    # A test's or a library's stand-in stays.
    if sys.stdout is not sys.__stdout__:
        yield
        return

    with _in_place_of_stdout():
        try:
            try:
                yield
            # Also where the program ends by SystemExit: bytes that are not flushed here are lost.
            finally:
                _flush()
        except (StdoutError, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
            raise


def _flush() -> None:
    sys.stdout.flush()


@contextmanager
def _in_place_of_stdout() -> Iterator[None]:
    before = sys.stdout
    before.flush()
    raw = _Descriptor(STDOUT, "w", closefd=False)
    guarded = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=raw.isatty(),
    )
    sys.stdout = guarded
    try:
        yield
    finally:
        # Click has put its own wrapper here where the reader has gone.
        if sys.stdout is guarded:
            sys.stdout = before


def _fill_closed_descriptors() -> None:
    """Open the null device as each closed standard stream, so that no file takes its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)

    os.close(descriptor)
