"""The ports that a run captures, and their files."""

from dataclasses import dataclass
from pathlib import Path

from emulation.errors import UnsupportedError
from fattree.errors import AddressError
from fattree.experiment.model import Scenario
from fattree.shape.addressing import host_interface_name, host_named, interface_name, switch_named
from fattree.shape.topology import FatTree


@dataclass(frozen=True, slots=True)
class Tap:
    """A port to capture: a host's (`host`), or a port of a switch (`host` is None)."""

    name: str
    interface: str
    host: int | None
    switch: int = 0
    port: int = 0

    def path(self, folder: Path, prefix: str, ending: str) -> Path:
        """Return the file of a capture."""
        # Without the colon, which not every file system takes, nor every tool.
        return folder / f"{prefix}{self.name.replace(':', '-')}{ending}"


def tap_named(tree: FatTree, name: str) -> Tap:
    """Return the port that `h0_1_0` or `edge0_1:3` names; raises UnsupportedError."""
    owner, _, port = name.partition(":")
    try:
        if not port:
            host = host_named(tree, owner)
            return Tap(name, host_interface_name(tree, host), host)

        switch = switch_named(tree, owner)
    except AddressError as error:
        raise UnsupportedError(f"--pcap {name}: {error}") from error

    if not port.isdecimal() or int(port) not in tree.ports(switch):
        raise UnsupportedError(f"--pcap {name}: {owner} has ports 1 to {len(tree.ports(switch))}")

    return Tap(name, interface_name(tree, switch, int(port)), None, switch, int(port))


def prefix_of(scenario: Scenario, is_own: bool) -> str:
    """Return the beginning of the names of a run's captures; `is_own`: a program of the user's."""
    return f"{'program' if is_own else scenario.balancer}-{scenario.seed}-"
