"""The process's requests to Linux: its name, and the rights that it keeps after opening sockets.

A raw socket can be opened again, where an interface is deleted and made anew; nothing else. All
this is Linux's (prctl(2), capabilities(7)), and none of it is in Python's standard library.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import struct

from ofan_p4.softswitch.base.errors import SoftswitchError

# Of <linux/prctl.h> and <linux/capability.h>.
PR_SET_PDEATHSIG = 1
PR_GET_PDEATHSIG = 2
PR_SET_KEEPCAPS = 8
PR_SET_NAME = 15
CAPABILITY_VERSION_3 = 0x20080522
CAP_NET_RAW = 13

libc = ctypes.CDLL(None, use_errno=True)


class PrivilegeError(SoftswitchError):
    """The process cannot become the user of its options."""


def take_name(name: str) -> None:
    """Have `ps` and `pkill` know the process by a name, of which Linux keeps the first 15 bytes."""
    libc.prctl(PR_SET_NAME, name.encode())


def become(user: str) -> None:
    """Become a user, with no right of root's but to open raw sockets; raises PrivilegeError."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise PrivilegeError(f"no such user: {user}") from None

    # The kernel forgets with whom we want to end when the user changes.
    ends_with_parent = ctypes.c_int()
    libc.prctl(PR_GET_PDEATHSIG, ctypes.byref(ends_with_parent))

    try:
        _check(libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
        os.setgroups([])
        os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
        os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
        _keep_only(1 << CAP_NET_RAW)
    except OSError as error:
        raise PrivilegeError(f"cannot become {user}: {error.strerror}") from None

    libc.prctl(PR_SET_PDEATHSIG, ends_with_parent.value)


def _keep_only(capabilities: int) -> None:
    """Set this thread's capabilities; threads that exist already have lost all of theirs."""
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    # Effective, permitted, inheritable; the second set of three is of numbers from 32 on.
    data = struct.pack("6I", capabilities, capabilities, 0, 0, 0, 0)
    _check(libc.capset(header, data))


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
