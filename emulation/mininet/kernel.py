"""Calls of the Linux kernel: a network namespace of the emulation's own, plain interfaces.

The whole network lives in one nameless namespace, with a further one per host. It vanishes with the
last process in it, so that nothing can be left behind and no name can clash with the machine's.
"""

import ctypes
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from emulation.errors import NetworkError
from emulation.remedies import REINSTALL, SUDO
from hostagent.agents.process import CLONE_NEWNET, back_in_this_namespace, check, libc

# Of <linux/sockios.h> and <linux/ethtool.h>: ETHTOOL_SRXCSUM, STXCSUM, SSG, STSO, SGSO, SGRO.
SIOCETHTOOL = 0x8946
OFFLOADS = (0x15, 0x17, 0x19, 0x1F, 0x24, 0x2C)
# Room for a packet with RoCE's largest MTU, 4096 bytes of payload, and its headers.
MTU = 9000
PACKAGES = {"mnexec": "mininet", "ip": "iproute2"}
ELSE = "or choose --network virtual"
# A token bucket that lets everything through at once.
WIDE_OPEN = "rate 100gbit burst 100mb limit 100mb"


def refuse_if_unable() -> None:
    """Raise NetworkError, one line with the remedy, where this machine cannot run Mininet."""
    # Both problems are named at once: root alone would not help.
    problems = [f"Mininet needs root: `{SUDO} ...`"] if os.geteuid() != 0 else []
    missing = _missing()
    if problems or missing:
        raise NetworkError(f"{'; '.join([*problems, *missing[:1]])}, {ELSE}")


def _missing() -> list[str]:
    """Return the missing programs, each with its remedy."""
    missing = [
        f"{program} is missing: install it (Debian/Ubuntu: apt install {package})"
        for program, package in PACKAGES.items()
        if shutil.which(program) is None
    ]
    # Looked for only: `topology` imports it when there is a network to build.
    if find_spec("mininet") is None:
        missing.insert(0, f"this Python has no Mininet: apt install mininet, then {REINSTALL}")

    return missing


@contextmanager
def own_namespace() -> Iterator[None]:
    """Move this thread, and the processes that it starts, into a new network namespace.

    Raises NetworkError if refused.
    """
    with back_in_this_namespace():
        try:
            check("a network namespace", libc.unshare(CLONE_NEWNET))
        except OSError as error:
            raise NetworkError(f"the kernel refuses {error.strerror}") from error

        without_ipv6()
        # BMv2 takes its queue limits over the loopback.
        ip_batch(["link set lo up"])
        _try_veth()
        yield


def without_ipv6() -> None:
    """Switch IPv6 off in the current namespace: interfaces that come up then say nothing."""
    for name in ("all", "default"):
        with suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")


def ip_batch(commands: Iterable[str]) -> None:
    """Run `ip` commands in one process; raises NetworkError with the kernel's words."""
    _batch("ip", commands)


def tc_batch(commands: Iterable[str]) -> None:
    """Run `tc` commands in one process; raises NetworkError with the kernel's words."""
    _batch("tc", commands)


def _batch(program: str, commands: Iterable[str]) -> None:
    script = "".join(f"{command}\n" for command in commands)
    # It stops at the first command that fails, with an error.
    done = subprocess.run(
        [program, "-batch", "-"], input=script, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NetworkError(f"{program}: {_reason(done.stderr)}")


@dataclass(frozen=True, slots=True)
class InterfaceCounts:
    """The kernel's counters of an interface.

    Frames are `refused` because their link was down, or lost them by chance. Its `index` is not
    that of another interface of the same name.
    """

    sent: int = 0
    sent_bytes: int = 0
    refused: int = 0
    received: int = 0
    index: int = 0

    def _columns(self) -> tuple[int, int, int, int]:
        return self.sent, self.sent_bytes, self.refused, self.received

    def since(self, before: "InterfaceCounts") -> "InterfaceCounts":
        """Return the counts since then; the whole counters, where the interface is new."""
        if before.index != self.index:
            return self

        pairs = zip(self._columns(), before._columns(), strict=True)
        return InterfaceCounts(*(now - was for now, was in pairs))

    def plus(self, more: "InterfaceCounts") -> "InterfaceCounts":
        """Return the sum of two counts."""
        both = zip(self._columns(), more._columns(), strict=True)
        return InterfaceCounts(*(mine + theirs for mine, theirs in both))


@dataclass(slots=True)
class InterfaceBooks:
    """The counts of all interfaces since the first reading, also of those that were made anew."""

    _last: dict[str, InterfaceCounts] = field(default_factory=dict)
    _total: dict[str, InterfaceCounts] = field(default_factory=dict)

    def read(self, swallows: bool = False) -> dict[str, InterfaceCounts]:
        """Return the counts up to now; `swallows` as of `interface_counts`."""
        nothing = InterfaceCounts()
        now = interface_counts(swallows)
        for name, counts in now.items():
            more = counts.since(self._last.get(name, nothing))
            self._total[name] = self._total.get(name, nothing).plus(more)

        self._last = now
        return dict(self._total)


def interface_counts(swallows: bool = False) -> dict[str, InterfaceCounts]:
    """Return the counts of every interface of this namespace.

    Where links are made to swallow frames (`swallow`, `losses`), these are `refused`, too.
    """
    swallowed = _swallowed() if swallows else {}
    done = subprocess.run(["ip", "-j", "-s", "link"], capture_output=True, text=True, check=True)
    counts = {}
    for row in json.loads(done.stdout):
        out = row["stats64"]["tx"]
        into = row["stats64"]["rx"]
        counts[row["ifname"]] = InterfaceCounts(
            out["packets"],
            out["bytes"],
            out["dropped"] + swallowed.get(row["ifname"], 0),
            into["packets"],
            row["ifindex"],
        )

    return counts


def _swallowed() -> Mapping[str, int]:
    """Return how many frames each interface's own queueing disciplines have dropped."""
    done = subprocess.run(
        ["tc", "-s", "-j", "qdisc", "show"], capture_output=True, text=True, check=True
    )
    drops: Counter[str] = Counter()
    for row in json.loads(done.stdout):
        if row["kind"] in ("netem", "tbf", "clsact"):
            drops[row["dev"]] += row.get("drops", 0)

    return drops


def _reason(stderr: str) -> str:
    lines = [
        line.removeprefix("RTNETLINK answers: ") for line in stderr.splitlines() if line.strip()
    ]
    return ", ".join(lines[:2]) or "no reason given"


def _try_veth() -> None:
    try:
        ip_batch(["link add ofan-probe0 type veth peer name ofan-probe1", "link del ofan-probe0"])
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except (NetworkError, OSError) as error:
        raise NetworkError(
            f"this kernel has no veth pairs or packet sockets ({error}): {ELSE}"
        ) from error


def without_offloads(interfaces: Iterable[str]) -> None:
    """Switch off the offloads that merge frames, split them or leave them unchecked.

    An offload that a kernel lacks is off already.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for interface in interfaces:
            for command in OFFLOADS:
                # struct ethtool_value, to which struct ifreq points.
                value = ctypes.create_string_buffer(struct.pack("II", command, 0))
                request = struct.pack("16sP8x", interface.encode(), ctypes.addressof(value))
                with suppress(OSError):
                    fcntl.ioctl(control, SIOCETHTOOL, request)


def add_latency(interfaces: Iterable[str], microseconds: int) -> None:
    """Delay the frames that leave interfaces; NetworkError where the kernel has no netem."""
    # netem's own limit, 1000 packets, could drop some of those under way.
    rule = f"netem delay {microseconds}us limit 100000"
    try:
        tc_batch(f"qdisc add dev {name} root {rule}" for name in interfaces)
    except NetworkError as error:
        raise NetworkError(
            f"this kernel cannot delay links (netem; {error}):"
            " --set fabric.latency_ns=100 for links without a delay,"
            " or use --switch softswitch, which delays by itself"
        ) from None


def swallow(interfaces: Iterable[str], frames: bool, microseconds: int) -> None:
    """Let every frame that leaves through interfaces vanish, or none any more, while they stay up.

    Raises NetworkError. `microseconds` is the links' latency, as of `add_latency`.

    For switches that cannot bear an interface of theirs to go down.
    """
    # The discipline that delays the link loses frames, too. Without a delay, a token bucket that
    # holds no frame drops them all. Both are changed in place: a removed discipline forgets its
    # count of drops.
    if microseconds:
        rule = f"netem delay {microseconds}us limit 100000 loss {100 if frames else 0}%"
    else:
        rule = f"tbf {'rate 8bit burst 1 limit 1' if frames else WIDE_OPEN}"

    tc_batch(f"qdisc replace dev {name} root {rule}" for name in interfaces)
