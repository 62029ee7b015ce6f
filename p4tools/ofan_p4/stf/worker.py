"""Many tests, one after the other, each within a time limit.

A test runs in another process, which is ended when it takes too long or dies with it: nothing that
a program does to the compiler or the switch can stop the rest.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from ofan_p4.stf.cases import Verdict, run_case

# Far more than importing takes, also on a loaded machine.
START_SECONDS = 60.0
# A forked child would inherit the locks of threads that it does not have.
CONTEXT = multiprocessing.get_context("spawn")


class Worker:
    """A process that runs one test at a time."""

    def __init__(self, include_dirs: Sequence[str]) -> None:
        self._include_dirs = tuple(include_dirs)
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def run(self, program: Path, script: Path, seconds: float) -> Verdict:
        """Return the verdict, `failed` where the test takes longer or ends the process."""
        pipe = self._pipe or self._start()
        pipe.send((program, script))
        if not pipe.poll(seconds):
            self.stop()
            return Verdict(
                str(program),
                script=str(script),
                status="failed",
                detail=f"no result within {seconds:g} s",
                seconds=seconds,
            )

        try:
            verdict: Verdict = pipe.recv()
        except EOFError:
            self.stop()
            return Verdict(
                str(program), str(script), "failed", "the process that ran the test has died"
            )

        return verdict

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()

        if self._pipe is not None:
            self._pipe.close()

        self._process = self._pipe = None

    def _start(self) -> Connection:
        ours, theirs = CONTEXT.Pipe()
        self._process = CONTEXT.Process(
            target=_serve, args=(theirs, self._include_dirs), daemon=True
        )
        self._process.start()
        # With our copy open, the death of the process would never be seen as end of file.
        theirs.close()

        # The time limit of the first test must not pay for the imports.
        if ours.poll(START_SECONDS):
            ours.recv()

        self._pipe = ours
        return ours


def run_cases(
    cases: Iterable[tuple[Path, Path]], seconds: float, include_dirs: Sequence[str] = ()
) -> Iterator[Verdict]:
    """Yield the verdict of each (program, script) pair as it is known."""
    worker = Worker(include_dirs)
    try:
        for program, script in cases:
            yield worker.run(program, script, seconds)
    finally:
        worker.stop()


def _serve(pipe: Connection, include_dirs: Sequence[str]) -> None:
    """Run tests until the other end closes."""
    pipe.send("ready")
    try:
        while True:
            program, script = pipe.recv()
            pipe.send(_judge(program, script, include_dirs))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _judge(program: Path, script: Path, include_dirs: Sequence[str]) -> Verdict:
    """Run one test; a bug of ours is a failure of the test, not the end of the run."""
    try:
        return run_case(program, script, include_dirs)
    except (OSError, UnicodeDecodeError) as error:
        return Verdict(str(program), str(script), "unsupported", f"cannot read: {error}")
    except Exception as error:
        return Verdict(
            str(program), str(script), "failed", f"internal error: {type(error).__name__}: {error}"
        )
