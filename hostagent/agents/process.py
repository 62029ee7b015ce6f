"""Requests of a process to the kernel: to end, to wake, to move namespace, to give up root."""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

# Of <linux/sched.h> and <linux/prctl.h>. Python 3.10 has neither setns nor prctl.
CLONE_NEWNET = 0x40000000
CLONE_NEWPID = 0x20000000
PR_SET_PDEATHSIG = 1
PR_SET_TIMERSLACK = 29
# A user that owns nothing: Linux's number for users that it cannot show (user_namespaces(7)).
NOBODY = 65534
THIS_NAMESPACE = "/proc/thread-self/ns/net"

libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(number: int) -> None:
    """Ask the kernel to end this process with signal `number` as soon as its parent is gone."""
    parent = os.getppid()
    libc.prctl(PR_SET_PDEATHSIG, number)

    # A parent that ended before the request sends no signal.
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def wake_on_time() -> None:
    """Ask the kernel not to put off this thread's timers (by 50 us, normally)."""
    libc.prctl(PR_SET_TIMERSLACK, 1)


def give_up_root() -> None:
    """Become the user `NOBODY`, if this is root; open files stay open.

    Raises OSError where the kernel refuses.
    """
    if os.geteuid() != 0:
        return

    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)

    # With the user the kernel drops the request to end with our parent (prctl(2)).
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def check(noun: str, result: int) -> None:
    """Raise OSError for a system call that failed."""
    if result:
        error = ctypes.get_errno()
        raise OSError(error, f"{noun}: {os.strerror(error)}")


@contextmanager
def back_in_this_namespace() -> Iterator[None]:
    """Return this thread to its present network namespace at the end, also after errors."""
    # setns moves the calling thread only; a socket stays in the namespace that it was opened in.
    here = os.open(THIS_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        libc.setns(here, CLONE_NEWNET)
        os.close(here)


@contextmanager
def inside(pid: int) -> Iterator[None]:
    """Move this thread into the network namespace of a process for a moment, to open sockets there.

    Raises OSError.
    """
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    with back_in_this_namespace():
        try:
            check(f"network namespace of process {pid}", libc.setns(namespace, CLONE_NEWNET))
        finally:
            os.close(namespace)

        yield
