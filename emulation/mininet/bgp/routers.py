"""FRR's zebra, bfdd and bgpd for every switch, each switch in a network namespace of its own.

All daemons run in one process namespace: they die with its first process, which dies with us, so
not even `kill -9` leaves a daemon behind. (The kernel forgets a daemon's request to die with its
parent when the daemon gives up root.)
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from emulation.errors import NetworkError, StartError
from emulation.mininet.bgp.configuration import configurations, link_ports
from emulation.mininet.children import INIT_PROGRAM, Children, children, last_words
from emulation.mininet.kernel import ip_batch, own_namespace, without_ipv6
from emulation.mininet.run_folder import RUN_FOLDER, run_folder
from emulation.remedies import SUDO
from fattree.files.memory import spare_bytes
from fattree.shape.addressing import dotted, interface_name, switch_name
from fattree.shape.topology import FatTree
from hostagent.agents.process import CLONE_NEWNET, back_in_this_namespace, check, libc

# Of Debian's and FRR's own packages.
DAEMONS = Path("/usr/lib/frr")
USER = "frr"
PROGRAMS = {"ip": "iproute2", "nsenter": "util-linux"}
# Memory of a switch's three daemons, measured with FRR 8.4.4 at k = 4, and of its planner's own.
MEGABYTES = 35
PLANNER_MEGABYTES = 20
START_SECONDS = 60.0
MEGABYTE = 10**6


@dataclass(frozen=True, slots=True)
class Routers:
    """The running routers of a fabric; `namespaces` has a descriptor for each switch.

    `run` is the folder of the run.
    """

    tree: FatTree
    run: Path
    namespaces: tuple[int, ...]
    processes: Children

    def namespace(self, switch: int) -> str:
        """Return the path of a switch's network namespace, for other processes of root's."""
        return f"/proc/{os.getpid()}/fd/{self.namespaces[switch]}"

    @contextmanager
    def inside(self, switch: int) -> Iterator[None]:
        """Move this thread into a switch's network namespace for a moment."""
        with back_in_this_namespace():
            namespace = self.namespaces[switch]
            check(switch_name(self.tree, switch), libc.setns(namespace, CLONE_NEWNET))
            yield

    def set_link(self, link: int, is_up: bool) -> None:
        """Take a link down, or up again, at its lower end; both ends lose their carrier."""
        lower, _ = self.tree.link_ends(link)
        with self.inside(lower.switch):
            name = interface_name(self.tree, *lower)
            ip_batch([f"link set {name} {'up' if is_up else 'down'}"])


def refuse_without_root() -> None:
    """Raise NetworkError without root, or without the programs that make namespaces."""
    if os.geteuid() != 0:
        raise NetworkError(
            f"BGP needs root: `{SUDO} bgp ...`; --configuration needs none, nor does"
            " --set controller.weights=bgp of other commands"
        )

    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise NetworkError(
                f"{program} is missing: install it (Debian/Ubuntu: apt install {package})"
            )


def refuse_without_frr(tree: FatTree, has_planners: bool = False) -> None:
    """Raise NetworkError where FRR is missing, or the machine's memory is too small for it."""
    if not (DAEMONS / "bgpd").exists():
        raise NetworkError("FRR is missing: install it (Debian/Ubuntu: apt install frr)")

    needed = (MEGABYTES + has_planners * PLANNER_MEGABYTES) * tree.switches
    spare = spare_bytes()
    if spare is not None and needed > spare // MEGABYTE:
        raise NetworkError(
            f"FRR{' with planners' * has_planners} on {tree.switches} switches takes some"
            f" {needed:,} MB, this machine can spare {spare // MEGABYTE:,} MB"
        )


@contextmanager
def routers(tree: FatTree, folder: Path = RUN_FOLDER) -> Iterator[Routers]:
    """Start the routers of a fabric, and end them.

    Raises NetworkError where the machine cannot run them, BusyError where another emulation runs.
    """
    refuse_without_root()
    refuse_without_frr(tree)
    with run_folder(folder) as run, own_namespace(), routers_in(tree, run) as started:
        yield started


@contextmanager
def routers_in(tree: FatTree, run: Path) -> Iterator[Routers]:
    """Start the routers of a fabric in a run's folder, each in a namespace below this thread's."""
    with ExitStack() as stack:
        namespaces = [_namespace(stack) for _ in range(tree.switches)]
        _wire(tree, namespaces)

        # FRR's daemons are a user of their own, which may pass through our folder to its own.
        run.chmod(0o711)
        folder = run / "bgp"
        folder.mkdir(mode=0o711)
        (folder / "logs").mkdir()
        processes = stack.enter_context(children(run))
        started = Routers(tree, run, tuple(namespaces), processes)
        _start(started, folder)
        yield started


def _namespace(stack: ExitStack) -> int:
    """Return a descriptor of a new network namespace."""
    with back_in_this_namespace():
        check("a network namespace", libc.unshare(CLONE_NEWNET))
        without_ipv6()
        ip_batch(["link set lo up"])
        namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    stack.callback(os.close, namespace)
    return namespace


def _wire(tree: FatTree, namespaces: list[int]) -> None:
    """Make every link between switches as a veth pair, with addresses."""
    us = f"/proc/{os.getpid()}/fd"
    ends = [tree.link_ends(link) for link in range(tree.links)]
    ip_batch(
        f"link add name {interface_name(tree, *lower)} netns {us}/{namespaces[lower.switch]}"
        f" type veth peer name {interface_name(tree, *upper)}"
        f" netns {us}/{namespaces[upper.switch]}"
        for lower, upper in ends
    )
    for switch, namespace in enumerate(namespaces):
        with back_in_this_namespace():
            check(switch_name(tree, switch), libc.setns(namespace, CLONE_NEWNET))
            ip_batch(
                line
                for port, address, _ in link_ports(tree, switch)
                for name in [interface_name(tree, switch, port)]
                for line in (
                    f"address add {dotted(address)}/31 dev {name}",
                    f"link set {name} up",
                )
            )


def _start(started: Routers, run: Path) -> None:
    # The first process of a process namespace: the kernel ends all others in it with it.
    started.processes.start(INIT_PROGRAM, [INIT_PROGRAM], run / "logs" / f"{INIT_PROGRAM}.log")

    for daemon in ("zebra", "bfdd", "bgpd"):
        for switch in range(started.tree.switches):
            _start_daemon(started, run, switch, daemon)

        # bgpd and bfdd connect to zebra's socket, and try again only after seconds.
        if daemon == "zebra":
            _await_sockets(started, run)


def _start_daemon(started: Routers, run: Path, switch: int, daemon: str) -> None:
    name = switch_name(started.tree, switch)
    folder = run / name
    if not folder.exists():
        folder.mkdir(mode=0o700)
        shutil.chown(folder, USER, USER)

    # In a folder of root's: FRR can read it, and cannot put a link in its place.
    configuration = run / f"{name}-{daemon}.conf"
    configuration.write_text(configurations(started.tree, switch)[daemon])
    configuration.chmod(0o644)
    started.processes.start(
        f"{name} {daemon}",
        [
            *("nsenter", f"--net={started.namespace(switch)}", str(DAEMONS / daemon)),
            *("-f", str(configuration), "-i", str(folder / f"{daemon}.pid")),
            *("-z", str(folder / "zserv"), "--vty_socket", str(folder)),
            *(("--bfdctl", str(folder / "bfdd.sock")) if daemon == "bfdd" else ()),
            # No TCP port for its command line.
            *("-P", "0"),
        ],
        run / "logs" / f"{name}-{daemon}.log",
    )


def _await_sockets(started: Routers, run: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    for switch in range(started.tree.switches):
        name = switch_name(started.tree, switch)
        while not (run / name / "zserv").exists():
            started.processes.refuse_dead()
            if time.monotonic() > deadline:
                log = run / "logs" / f"{name}-zebra.log"
                raise StartError(f"{name}: zebra has not started: {last_words(log)}")

            time.sleep(0.02)


def version() -> str:
    """Return FRR's version, `8.4.4`."""
    done = subprocess.run(
        [DAEMONS / "bgpd", "--version"], capture_output=True, text=True, check=False
    )
    _, _, behind = done.stdout.partition("version ")
    return behind.partition("\n")[0].strip() or "unknown"
