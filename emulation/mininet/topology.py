"""The fat-tree as a Mininet network: hosts in namespaces, veth links, switches beside Mininet.

Mininet's own defaults are for kernel traffic and OpenFlow; ours is raw frames, so hosts have no IP
addresses, nothing configures with ifconfig, and there is no controller in Mininet's sense.
Everything is made in the caller's network namespace (`kernel.own_namespace`), and goes with it.
"""

import resource
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from emulation.errors import NetworkError
from emulation.mininet.kernel import MTU, ip_batch, without_offloads
from fattree.shape.addressing import (
    colons,
    host_interface_name,
    host_mac,
    host_name,
    interface_name,
    switch_interfaces,
    switch_mac,
    switch_name,
)
from fattree.shape.topology import FatTree, LinkEnd

# Mininet's modules use deprecated functions of Python; users cannot change that.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from mininet.link import Link
    from mininet.log import setLogLevel
    from mininet.net import Mininet
    from mininet.node import Node, Switch
    from mininet.topo import Topo

# Mininet keeps a shell with pipes for every node.
OPEN_FILES = 16_384


class VethLink(Link):  # type: ignore[misc]
    """A veth pair, made with its MTU; its namespaces delete it."""

    @classmethod
    def makeIntfPair(
        cls,
        intfname1: str,
        intfname2: str,
        addr1: str,
        addr2: str,
        node1: Node,
        node2: Node,
        **_: Any,
    ) -> None:
        """Make both ends where they belong."""
        # `ip` prints nothing when all is well.
        said = node1.cmd(
            f"ip link add name {intfname1} address {addr1} mtu {MTU} type veth"
            f" peer name {intfname2} address {addr2} mtu {MTU} netns {node2.pid}"
        ).strip()

        if said:
            raise NetworkError(
                f"link {intfname1} - {intfname2}: {said.removeprefix('RTNETLINK answers: ')}"
            )

    def stop(self) -> None:
        """Leave the pair to its namespaces."""


class FabricHost(Node):  # type: ignore[misc]
    """A namespace with one interface and no address."""

    @classmethod
    def setup(cls) -> None:
        """Need no ifconfig."""

    def configDefault(self, **_: Any) -> None:
        """Bring the interface up, and nothing that would talk on it."""
        # With IPv6 the kernel would look for routers as soon as the interface is up.
        self.cmd(
            "for f in all default; do"
            " echo 1 > /proc/sys/net/ipv6/conf/$f/disable_ipv6; done 2>/dev/null"
        )
        said = self.cmd(f"ip link set {self.defaultIntf()} up").strip()
        if said:
            raise NetworkError(f"{self.name}: {said}")


class FabricSwitch(Switch):  # type: ignore[misc]
    """The place of a switch.

    Its process is started beside Mininet, all of them in parallel (`emulation.mininet.children`).
    """

    @classmethod
    def setup(cls) -> None:
        """Need no ifconfig."""

    def start(self, _controllers: list[Any]) -> None:
        """Wait for `emulation.mininet.children`."""

    def stop(self, deleteIntfs: bool = False) -> None:
        """Leave the process to `emulation.mininet.children`."""


class FatTreeTopo(Topo):  # type: ignore[misc]
    """Mininet's description of a fat-tree, with our names, ports and addresses."""

    def build(self, tree: FatTree) -> None:
        """Add hosts, switches and links."""
        for host in range(tree.hosts):
            self.addHost(host_name(tree, host), ip=None)

        # Mininet wants a dpid, which OpenFlow alone uses.
        for switch in range(tree.switches):
            self.addSwitch(switch_name(tree, switch), dpid=f"{switch + 1:016x}")

        for host in range(tree.hosts):
            self._wire(
                (host_name(tree, host), 0, host_interface_name(tree, host), host_mac(tree, host)),
                _end(tree, tree.access(host)),
            )

        for link in range(tree.links):
            lower, upper = tree.link_ends(link)
            self._wire(_end(tree, lower), _end(tree, upper))

    def _wire(self, near: tuple[str, int, str, int], far: tuple[str, int, str, int]) -> None:
        self.addLink(
            near[0], far[0], port1=near[1], port2=far[1], intfName1=near[2], intfName2=far[2],
            addr1=colons(near[3]), addr2=colons(far[3]),
        )  # fmt: skip


def _end(tree: FatTree, end: LinkEnd) -> tuple[str, int, str, int]:
    mac = switch_mac(tree, end.switch)
    return switch_name(tree, end.switch), end.port, interface_name(tree, end.switch, end.port), mac


@contextmanager
def fat_tree(tree: FatTree) -> Iterator[Mininet]:
    """Build the namespaces and links in the caller's network namespace; raises NetworkError."""
    setLogLevel("critical")
    _raise_open_files()
    # Mininet's own initialisation changes the machine's settings for good.
    Mininet.inited = True
    network = Mininet(
        switch=FabricSwitch, host=FabricHost, link=VethLink, controller=None, build=False
    )

    try:
        network.topo = FatTreeTopo(tree)
        network.build()
        _bring_up(tree)
        yield network
    # Mininet exits where a program is missing, with a message of its own.
    except SystemExit as error:
        raise NetworkError("Mininet gave up: see its words above") from error
    finally:
        network.stop()


def _bring_up(tree: FatTree) -> None:
    names = switch_interfaces(tree)
    ip_batch(f"link set {name} up" for name in names)
    without_offloads(names)


def host_processes(network: Mininet, tree: FatTree) -> list[int]:
    """Return, for every host, a process that lives in its namespace."""
    return [network[host_name(tree, host)].pid for host in range(tree.hosts)]


def _raise_open_files() -> None:
    # Up to the hard limit at most, which stays as it is.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, max(hard, soft)), hard))
