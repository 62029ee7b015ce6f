"""The faults: each breaks something of a running network now, and mends it after a while."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

from controller.fabric_controller import LinkChange
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.kernel import MTU, ip_batch
from fattree.shape.addressing import colons, interface_name, switch_mac, switch_name

# A fault is a generator of the milliseconds until its next step.
Steps = Iterator[int]
Fault = Callable[[MininetFabric, Random], Steps]


def freeze(fabric: MininetFabric, draw: Random) -> Steps:
    """SIGSTOP on a switch for a while."""
    name = _switch(fabric, draw)
    pid = fabric.switches.processes.pids[name]
    _signal(pid, signal.SIGSTOP)
    yield draw.randrange(50, 900)
    _signal(pid, signal.SIGCONT)


def kill(fabric: MininetFabric, draw: Random) -> Steps:
    """SIGKILL on a switch."""
    _signal(fabric.switches.processes.pids[_switch(fabric, draw)], signal.SIGKILL)
    yield 0


def freeze_and_kill(fabric: MininetFabric, draw: Random) -> Steps:
    """SIGKILL on a switch that SIGSTOP has frozen."""
    pid = fabric.switches.processes.pids[_switch(fabric, draw)]
    _signal(pid, signal.SIGSTOP)
    yield draw.randrange(50, 500)
    _signal(pid, signal.SIGKILL)


def flap(fabric: MininetFabric, draw: Random) -> Steps:
    """A link that goes down and up, again and again."""
    link = draw.randrange(fabric.tree.links)
    for _ in range(draw.randrange(1, 4)):
        fabric.change_links(LinkChange(down=frozenset({link})))
        yield draw.randrange(10, 200)
        fabric.change_links(LinkChange(up=frozenset({link})))
        yield draw.randrange(10, 100)


def fail_some(fabric: MininetFabric, draw: Random) -> Steps:
    """Several links of one layer fail together."""
    links = frozenset(draw.sample(range(fabric.tree.links), 3))
    fabric.change_links(LinkChange(down=links))
    yield draw.randrange(50, 500)
    fabric.change_links(LinkChange(up=links))


def delete_interface(fabric: MininetFabric, draw: Random) -> Steps:
    """A pair of interfaces is deleted, and made again under its names."""
    ends = fabric.tree.link_ends(draw.randrange(fabric.tree.links))
    names = [interface_name(fabric.tree, *end) for end in ends]
    macs = [colons(switch_mac(fabric.tree, end.switch)) for end in ends]
    ip_batch([f"link del {names[0]}"])
    yield draw.randrange(20, 300)
    ip_batch(
        [
            f"link add name {names[0]} address {macs[0]} mtu {MTU} type veth"
            f" peer name {names[1]} address {macs[1]} mtu {MTU}",
            *(f"link set {name} up" for name in names),
        ]
    )


def cut_session(fabric: MininetFabric, draw: Random) -> Steps:
    """The controller's connection to a switch breaks, and a link changes meanwhile."""
    fabric.sessions[draw.randrange(fabric.tree.switches)].close()
    yield from flap(fabric, draw)


def restart_controller(fabric: MininetFabric, draw: Random) -> Steps:
    """A controller that remembers nothing takes over."""
    yield draw.randrange(0, 100)
    fabric.restart_controller()


def stop_traffic(fabric: MininetFabric, draw: Random) -> Steps:
    """The traffic is stopped in the middle."""
    yield draw.randrange(0, 200)
    fabric.agents.stop()


def freeze_and_stop(fabric: MininetFabric, draw: Random) -> Steps:
    """The traffic is stopped while a switch is frozen, which wakes in a later run."""
    pid = fabric.switches.processes.pids[_switch(fabric, draw)]
    _signal(pid, signal.SIGSTOP)
    yield draw.randrange(50, 300)
    fabric.agents.stop()
    yield draw.randrange(200, 1500)
    _signal(pid, signal.SIGCONT)


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        freeze,
        kill,
        freeze_and_kill,
        flap,
        fail_some,
        delete_interface,
        cut_session,
        restart_controller,
        stop_traffic,
        freeze_and_stop,
    )
}


def _switch(fabric: MininetFabric, draw: Random) -> str:
    return switch_name(fabric.tree, draw.randrange(fabric.tree.switches))


def _signal(pid: int, number: int) -> None:
    # It may have ended by the fault before.
    with suppress(ProcessLookupError):
        os.kill(pid, number)
