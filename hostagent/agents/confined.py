"""Confinement of a process: it gives up all files for good, as root or not, on any Linux.

Each of three ways closes gaps of the others; a way that a machine does not offer is left out:

    an empty root     a folder that is deleted already: no path leads anywhere. Root may have it,
                      and other users where the kernel gives them user namespaces.
    Landlock          (Linux 5.13) nothing can be opened, made, moved or deleted; from 6.12 on no
                      process outside is sent signals
    no descriptors    nothing can be opened, no socket made

Without an empty root, rights and times of the user's own files can still be changed.
"""

import ctypes
import os
import resource
import struct
import tempfile
from contextlib import suppress

from hostagent.agents.process import check, libc

CLONE_NEWUSER = 0x10000000
PR_SET_NO_NEW_PRIVS = 38
# Of <linux/landlock.h> and <linux/capability.h>; the numbers are those of every architecture.
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_RESTRICT_SELF = 446
LANDLOCK_VERSION = 1
CAPABILITY_VERSION = 0x20080522
# The number of Landlock's rights over files, by its version: a right that is not named stays
# allowed. Rights over the network, and the scope of signals and sockets, take a word more each.
RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
NETWORK_SINCE = 4
SCOPE_SINCE = 6
TWO_RIGHTS = 3


def give_up_files() -> None:
    """Leave this process its open files only; modules must be imported by now."""
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Not every machine offers these two.
    with suppress(OSError):
        _enter_nothing()
    with suppress(OSError):
        _landlock()

    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def _enter_nothing() -> None:
    """Make a folder that is deleted the root of this process; raises OSError."""
    before = os.open(".", os.O_RDONLY)
    try:
        folder = tempfile.mkdtemp(prefix="ofan-nothing-")
        os.chdir(folder)
        os.rmdir(folder)
        is_root = os.geteuid() == 0
        if not is_root:
            check("a user namespace", libc.unshare(CLONE_NEWUSER))

        os.chroot(".")
        if not is_root:
            _give_up_capabilities()
    except OSError:
        os.fchdir(before)
        raise
    finally:
        os.close(before)


def _give_up_capabilities() -> None:
    """Give up the capabilities of a new user namespace; raises OSError."""
    header = struct.pack("Ii", CAPABILITY_VERSION, 0)
    check("capset", libc.capset(header, bytes(24)))


def _landlock() -> None:
    """Let Landlock forbid every right that it knows; raises OSError."""
    version = libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION)
    if version < 1:
        raise OSError(ctypes.get_errno(), "there is no Landlock")

    rights = max(count for since, count in RIGHTS.items() if since <= version)
    masks = [(1 << rights) - 1]
    masks += [TWO_RIGHTS for since in (NETWORK_SINCE, SCOPE_SINCE) if since <= version]
    rules = struct.pack(f"{len(masks)}Q", *masks)
    ruleset = libc.syscall(LANDLOCK_CREATE_RULESET, rules, len(rules), 0)
    check("Landlock", min(ruleset, 0))
    try:
        check("Landlock", libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
