"""A warm parent for the switches of a network: it imports their program once and forks them.

That saves memory and time. It is a process of its own, because a process that uses gRPC must not
fork; and as everything in it dies with its parent, not even `kill -9` leaves a switch behind. It
speaks JSON over a socket: {"name", "argv", "log"} starts a process (argv[0] is a program of ours or
of the machine), {"name", "pid"} reports its start, {"name", "exited"} its end.
"""

import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulation.errors import BusyError, NetworkError, StartError
from emulation.mininet.run_folder import run_folder
from hostagent.agents.process import CLONE_NEWPID, check, die_with_parent, libc
from hostagent.isolation import clean_environment, python_command
from ofan_p4.softswitch.native.kept import preload

SOFTSWITCH_PROGRAM = "softswitch"
PLANNER_PROGRAM = "planner"
# Its end is the end of all processes that are started after it.
INIT_PROGRAM = "init"
# Programs of ours: their modules are imported before the fork, the last of them has `main`.
PROGRAMS = {
    SOFTSWITCH_PROGRAM: [
        f"ofan_p4.softswitch.daemon.{module}"
        for module in ("dataplane", "grpc_server", "ports", "stats", "process")
    ],
    PLANNER_PROGRAM: ["controller.switch_planner"],
}
# The number of last lines of a log in the error about a process that has ended.
LAST_WORDS = 4
# The time that children have to end by themselves.
GRACE_SECONDS = 3.0
# The time that the parent has to report an end that others have noticed already.
REPORT_SECONDS = 1.0
MESSAGE_BYTES = 1 << 16


@dataclass(slots=True)
class Children:
    """The parent's view: start processes, and learn which have ended.

    `pids` has every process that was started, by its latest start.
    """

    channel: socket.socket
    logs: dict[str, Path] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    exited: dict[str, int] = field(default_factory=dict)

    def start(self, name: str, argv: Sequence[str], log: Path) -> None:
        """Start a process; its output goes to `log`.

        Raises StartError where the parent has ended.
        """
        self.logs[name] = log
        self.pids.pop(name, None)
        _tell(self.channel, {"name": name, "argv": list(argv), "log": str(log)})

        # Waited for: a process that serves before its number is read would have no owner.
        while name not in self.pids:
            message = _receive(self.channel)
            if message is None:
                raise StartError(f"{name} cannot be started: the switches' parent has ended")

            self._note(message)

    def listen(self) -> None:
        """Take in the reports so far, without waiting."""
        while message := _receive(self.channel, socket.MSG_DONTWAIT):
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        if "pid" in message:
            self.pids[message["name"]] = message["pid"]
        else:
            self.exited[message["name"]] = message["exited"]

    def kill(self, names: set[str]) -> None:
        """Kill processes, and wait for their ends, which are no news."""
        self.listen()
        waiting = names & self.pids.keys() - self.exited.keys()
        for name in waiting:
            # The report of its end may still be on its way.
            with suppress(ProcessLookupError):
                os.kill(self.pids[name], signal.SIGKILL)

        while waiting - self.exited.keys() and (message := _receive(self.channel)):
            self._note(message)

        for name in names:
            self.exited.pop(name, None)

    def stopped(self) -> set[str]:
        """Return the names of processes that a signal has stopped."""
        return {name for name, pid in self.pids.items() if process_fields(pid)[0] == "T"}

    def refuse_dead(self) -> None:
        """Raise StartError where a process has ended, with its last lines."""
        self.listen()
        for name, code in self.exited.items():
            raise StartError(f"{name} {ending(code)}: {last_words(self.logs[name])}")

    def refuse_ending(self, seconds: float = REPORT_SECONDS) -> None:
        """Raise StartError if a process turns out to have ended.

        For use when a process has stopped answering.
        """
        select.select([self.channel], [], [], seconds)
        self.refuse_dead()

    def await_all(self, is_ready: Callable[[str], bool], seconds: float) -> None:
        """Wait until every process is ready.

        Raises StartError, naming a process that has ended or is late.
        """
        waiting = set(self.logs)
        deadline = time.monotonic() + seconds
        while waiting := {name for name in waiting if not is_ready(name)}:
            self.refuse_dead()
            if time.monotonic() > deadline:
                # Any of them would do: the first by name.
                name = min(waiting)
                raise StartError(
                    f"{name} is not ready after {seconds:.0f} s: {last_words(self.logs[name])}"
                )

            time.sleep(0.02)


def process_fields(pid: int) -> list[str]:
    """Return the fields of a process from its state on (proc(5)); `X` where it has ended."""
    with suppress(OSError):
        # The field before, the command's name in parentheses, may hold blanks.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()

    return ["X"]


def ending(code: int) -> str:
    """Return how a process has ended, in words."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def last_words(log: Path) -> str:
    """Return the last lines of a log as a single line."""
    lines = (
        [line.strip() for line in log.read_text(errors="replace").splitlines()]
        if log.exists()
        else []
    )

    return " | ".join([line for line in lines if line][-LAST_WORDS:]) or "it said nothing"


@contextmanager
def children(folder: Path | None = None, kept: Sequence[str] = ()) -> Iterator[Children]:
    """Start the warm parent in this thread's network namespace, and end it and all it started.

    Where this process is killed, it removes the run folder in its place. `kept` are the keys of
    the machine code that switches will ask for.
    """
    # Packets keep the bounds of messages; to read none is the end.
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    arguments = [str(theirs.fileno()), str(folder or ""), *kept]
    command = python_command("emulation.mininet.children", *arguments)
    process = subprocess.Popen(
        command,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env=clean_environment(),
    )
    theirs.close()

    try:
        yield Children(ours)
    finally:
        ours.close()
        process.wait()


def _tell(channel: socket.socket, message: dict[str, Any]) -> None:
    """Send a message; a closed channel is noticed when it is read."""
    with suppress(ConnectionError):
        channel.send(json.dumps(message).encode())


def _receive(channel: socket.socket, flags: int = 0) -> dict[str, Any] | None:
    try:
        data = channel.recv(MESSAGE_BYTES, flags)
    except (BlockingIOError, ConnectionResetError):
        return None

    message: dict[str, Any] | None = json.loads(data) if data else None
    return message


def main() -> None:
    """Serve as the warm parent, until the other end of the socket is closed."""
    # Threads of numpy's are for large matrices, and impossible once `init` is in a namespace.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    # Also by `kill -9`: the kernel closes all descriptors of a process.
    channel = socket.socket(fileno=int(sys.argv[1]))
    selector = selectors.DefaultSelector()
    selector.register(channel, selectors.EVENT_READ)
    children: dict[str, int] = {}

    while True:
        for key, _ in selector.select():
            # A child's descriptor has its name, the channel none.
            if key.data is not None:
                _report(channel, selector, key, children)
            elif not (request := _receive(channel)):
                _end(children)
                _remove(sys.argv[2])
                return
            else:
                name = request["name"]
                pid = _fork(request)
                children[name] = pid
                # A pidfd is readable when its process has ended: no signal handler is needed.
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, name)
                _tell(channel, {"name": name, "pid": pid})


def _report(
    channel: socket.socket,
    selector: selectors.BaseSelector,
    key: selectors.SelectorKey,
    children: dict[str, int],
) -> None:
    _, status = os.waitpid(children.pop(key.data), 0)
    selector.unregister(key.fileobj)
    os.close(key.fd)
    _tell(channel, {"name": key.data, "exited": os.waitstatus_to_exitcode(status)})


def _fork(request: dict[str, Any]) -> int:
    argv = request["argv"]

    # Before the fork, so that all children share the pages of imported modules.
    run = _main_of(argv[0]) if argv[0] in PROGRAMS else None
    if argv[0] == INIT_PROGRAM:
        # For the children from now on: `nsenter` would fork, and its end would not be theirs.
        check("a process namespace", libc.unshare(CLONE_NEWPID))
        run = _init

    # A child's collector would write to each shared object, and so copy all of them.
    gc.freeze()
    pid = os.fork()

    if pid == 0:
        _be_child(argv, request["log"], run)

    return pid


def _main_of(program: str) -> Callable[[list[str]], Any]:
    is_first = PROGRAMS[program][-1] not in sys.modules
    *_, main = [importlib.import_module(name) for name in PROGRAMS[program]]

    # The switches become the user `nobody`, who may not read root's files.
    if is_first and program == SOFTSWITCH_PROGRAM:
        preload(sys.argv[3:])

    run: Callable[[list[str]], Any] = main.main
    return run


def _init(_arguments: list[str]) -> None:
    # The kernel hides signals without a handler from the first process of a namespace.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.sigwait([signal.SIGTERM])


def _be_child(argv: list[str], log: str, run: Callable[[list[str]], Any] | None) -> None:
    """Become the process; never returns."""
    # Also after an error this copy of the parent must not go on as a second parent.
    code = 1
    try:
        die_with_parent(signal.SIGKILL)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)

        if run is None:
            os.execvp(argv[0], argv)

        code = _run(run, argv[1:])
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(code)


def _run(run: Callable[[list[str]], Any], arguments: list[str]) -> int:
    try:
        code = run(arguments)
    except SystemExit as error:
        code = error.code
    # As the interpreter does at a program's end; os._exit leaves without it.
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1

    sys.stdout.flush()
    sys.stderr.flush()

    # sys.exit takes a number, a message for stderr (code 1), or nothing (code 0).
    if isinstance(code, str):
        os.write(2, f"{code}\n".encode())

    return code if isinstance(code, int) else int(code is not None)


def _remove(folder: str) -> None:
    """Remove the run folder, unless a process holds it: its living owner, or the next run."""
    if folder:
        with suppress(BusyError, NetworkError, OSError), run_folder(Path(folder)):
            pass


def _end(children: dict[str, int]) -> None:
    """End the children that are left, with a grace, so that pcap files and logs are complete."""
    for pid in children.values():
        os.kill(pid, signal.SIGTERM)

    deadline = time.monotonic() + GRACE_SECONDS
    running = set(children.values())
    while running and time.monotonic() < deadline:
        # (0, 0): it has not ended yet.
        running = {pid for pid in running if os.waitpid(pid, os.WNOHANG) == (0, 0)}
        time.sleep(0.01)

    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
