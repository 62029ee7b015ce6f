"""Dask: a scheduler that the user has named, or processes on this machine.

Dask takes a second to import, which most commands do not need, so functions import it.
"""

import logging
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hostagent.isolation import shut_out_others
from sim.errors import FailedRunsError, SweepError
from sim.kernels.jit import CACHE
from sim.runs import engine
from sim.sweeps.main_guard import refuse_unguarded
from sim.sweeps.own_folder import own_folder

if TYPE_CHECKING:
    from distributed import Client

# The wait for a scheduler that is just starting; a misspelt name should not take longer.
CONNECT_SECONDS = 5
RETRY_SECONDS = 0.2
WORKER_SECONDS = 2
FOLDERS = "ofan-workers-"
# The descriptors of a scheduler and its client, and those for each of their processes.
DESCRIPTORS = 40
DESCRIPTORS_A_JOB = 12
SCHEMES = ("tcp", "tls", "ws", "wss")


@contextmanager
def connected(jobs: int, scheduler: str | None) -> Iterator["Client"]:
    """Connect to a scheduler, or start processes that end with this process.

    The ports of our own are on loopback. Raises SweepError where no scheduler answers.
    """
    with _quiet():
        if scheduler is None:
            with _processes(jobs) as client:
                yield client
        else:
            _find(scheduler)
            with _client(scheduler) as client:
                _say_if_idle(client, scheduler)
                yield client


def refuse_few_descriptors(jobs: int) -> None:
    """Raise SweepError where this process may not open the descriptors for so many processes."""
    least = DESCRIPTORS + jobs * DESCRIPTORS_A_JOB
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < least:
        raise SweepError(
            f"--jobs {jobs} needs about {least} file descriptors, and a process may have {soft}"
            " here (ulimit -n): allow more, or take fewer jobs"
        )


@contextmanager
def _processes(jobs: int) -> Iterator["Client"]:
    refuse_unguarded()
    refuse_few_descriptors(jobs)
    import dask  # noqa: PLC0415
    from distributed import Client, LocalCluster

    # One thread a process, since a run is single-threaded, and no limit of memory at which Dask
    # would stop a run in the middle.
    quiet = {"silence_logs": logging.CRITICAL, "dashboard_address": None}
    loopback = {"dashboard_address": "127.0.0.1:0"}
    workers = {"n_workers": jobs, "threads_per_worker": 1, "memory_limit": 0}

    with ExitStack() as stack:
        # Dask leaves locks behind in the folder of its workers' spilled memory.
        folder = stack.enter_context(own_folder(FOLDERS))
        stack.enter_context(dask.config.set(_own_configuration(str(folder))))
        with _deaf_children():
            cluster = LocalCluster(host="127.0.0.1", scheduler_kwargs=loopback, **workers, **quiet)

        stack.enter_context(cluster)
        client = stack.enter_context(Client(cluster, set_as_default=False))
        _quieten(client, jobs)
        yield client


def _quieten(client: "Client", jobs: int) -> None:
    try:
        client.run(say_nothing_of_the_cache)
    # That of a connection which the other end has closed.
    except OSError:
        raise FailedRunsError(
            f"one of {jobs} processes ended as it started (out of memory?):"
            " the same command goes on"
        ) from None


def _own_configuration(folder: str) -> dict[str, Any]:
    """Return Dask's defaults: a user's settings for other clusters do not touch our own.

    Above all not the code that processes run as they start.
    """
    import dask  # noqa: PLC0415

    configuration: dict[str, Any] = {}
    dask.config.refresh(config=configuration, paths=[], env={})
    configuration["temporary-directory"] = folder
    configuration["distributed"]["worker"]["preload"] = [shut_out_others.__module__]
    return configuration


def say_nothing_of_the_cache() -> None:
    """Leave the message about the folder of compiled kernels to the process that started us."""
    # In the module with the message: the name there is its own.
    vars(engine)["CACHE"] = CACHE._replace(note="")


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Keep Ctrl-C, which reaches all processes on a terminal, from those that are started here.

    Ours comes at the end. Processes and threads inherit blocked signals.
    """
    from multiprocessing import resource_tracker  # noqa: PLC0415

    # multiprocessing starts its tracker with the first process, and unblocks the signal then.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _at_the_end(signal.SIGTERM):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _at_the_end(number: signal.Signals) -> Iterator[None]:
    """Let a signal wait until processes have started: not blocked, as it ends them, too."""
    if current_thread() is not main_thread():
        yield
        return

    signals: list[signal.Signals] = []
    before = signal.signal(number, lambda *_: signals.append(number))
    try:
        yield
    finally:
        signal.signal(number, before)

    if signals:
        signal.raise_signal(number)


def _find(scheduler: str) -> None:
    """Raise SweepError unless a Dask scheduler answers.

    A client of Dask's tries for long by itself, and leaves threads behind when it gives up.
    """
    host, port = _endpoint(scheduler)
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
            break
        except OSError as error:
            # A name that means nothing will not mean anything later; a refusal may be a late start.
            if isinstance(error, socket.gaierror) or time.monotonic() > deadline:
                raise SweepError(
                    f"no Dask scheduler at {scheduler}: {error.strerror or error}"
                ) from None

        time.sleep(RETRY_SECONDS)

    # Dask is imported before the time runs: on a busy machine that takes longer than an answer.
    import asyncio  # noqa: PLC0415

    from distributed import Security

    arguments = Security().get_connection_args("client")
    try:
        asyncio.run(asyncio.wait_for(_identify(scheduler, arguments), CONNECT_SECONDS))
    except Exception:  # whatever answered may send anything
        raise SweepError(f"no Dask scheduler at {scheduler}: what answers there is none") from None


def _endpoint(scheduler: str) -> tuple[str, int]:
    """Return host and port of an address such as tcp://host:8786 or host:8786."""
    with suppress(ValueError):
        parts = urlsplit(scheduler if "://" in scheduler else f"tcp://{scheduler}")
        if parts.scheme in SCHEMES and parts.hostname and parts.port:
            return parts.hostname, parts.port

    raise SweepError(
        f"no Dask scheduler at {scheduler!r}: expected an address as in tcp://127.0.0.1:8786"
    )


async def _identify(scheduler: str, arguments: dict[str, Any]) -> None:
    """Raise an error unless a Dask scheduler answers."""
    from distributed.core import rpc

    async with rpc(scheduler, connection_args=arguments) as peer:
        identity = await peer.identity()

    assert identity["type"] == "Scheduler"


def _client(scheduler: str) -> "Client":
    from distributed import Client

    try:
        return Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise SweepError(
            f"no Dask scheduler at {scheduler}: {str(error).splitlines()[0]}"
        ) from None


def _say_if_idle(client: "Client", scheduler: str) -> None:
    """Warn on stderr about a scheduler without workers; workers may come later."""
    # Like Dask, which is loaded by now, it takes a tenth of a second.
    import asyncio  # noqa: PLC0415

    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    # Python 3.10 has two kinds of TimeoutError, and this is Dask's.
    except asyncio.TimeoutError:
        sys.stderr.write(
            f"the Dask scheduler at {scheduler} has no workers yet: "
            f"waiting for the first, as of `dask worker {scheduler}`\n"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's log lines from the terminal; its errors have the same content."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)

    try:
        yield
    finally:
        logger.setLevel(level)
