"""The routes in each switch's kernel, and when the kernel changes them."""

import json
import select
import socket
import subprocess
import time
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from pyroute2.netlink.rtnl import RTMGRP_IPV4_ROUTE

from emulation.mininet.bgp.configuration import edge_network
from emulation.mininet.bgp.routers import Routers
from fattree.shape.addressing import interface_name

MESSAGE_BYTES = 1 << 16
BUFFER_BYTES = 1 << 22
MS = 1_000

Rows = NDArray[np.int64]


def uplink_weights(routers: Routers, switch: int) -> Rows:
    """Return a switch's weights (destination edges, uplinks) from its kernel, 0 without a route."""
    tree = routers.tree
    first = tree.uplink_port(switch, 0)
    uplinks = {
        interface_name(tree, switch, port): port - first
        for port in range(first, first + tree.uplinks(switch))
    }
    edges = {edge_network(tree, edge): edge for edge in range(tree.edges)}
    with routers.inside(switch):
        done = subprocess.run(
            ["ip", "-j", "route", "show", "proto", "bgp"],
            capture_output=True,
            text=True,
            check=True,
        )

    rows = np.zeros((tree.edges, tree.uplinks(switch)), dtype=np.int64)
    for route in json.loads(done.stdout or "[]"):
        # A route with a single next hop has no list, and no weight.
        for hop in route.get("nexthops") or [route]:
            is_dead = "dead" in hop.get("flags", ())
            if route["dst"] in edges and hop.get("dev") in uplinks and not is_dead:
                rows[edges[route["dst"]], uplinks[hop["dev"]]] = hop.get("weight", 1)

    return rows


class RouteMonitor:
    """Hears from the kernels of all switches when they change a route."""

    def __init__(self, routers: Routers) -> None:
        self._poller = select.poll()
        self._channels: dict[int, socket.socket] = {}
        self._switch_of: dict[int, int] = {}
        for switch in range(routers.tree.switches):
            # A socket stays in the namespace in which it was opened.
            with routers.inside(switch):
                channel = socket.socket(
                    socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0
                )
                channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
                channel.bind((0, RTMGRP_IPV4_ROUTE))

            self._channels[switch] = channel
            self._switch_of[channel.fileno()] = switch
            self._poller.register(channel, select.POLLIN)

    def close(self) -> None:
        """Stop listening."""
        for channel in self._channels.values():
            channel.close()

    @property
    def channels(self) -> list[tuple[socket.socket, int]]:
        """Return each switch's socket, readable when its kernel has changed a route."""
        return [(channel, switch) for switch, channel in self._channels.items()]

    def drain(self, switch: int) -> None:
        """Take the messages from a switch's socket: its routes are read anew, in full."""
        # Also an overrun of the buffer (ENOBUFS) is news.
        with suppress(OSError):
            while self._channels[switch].recv(MESSAGE_BYTES):
                pass

    def until_quiet(self, quiet_s: float) -> dict[int, float]:
        """Return when each switch last changed a route (CLOCK_MONOTONIC), after a quiet time."""
        changed: dict[int, float] = {}
        while ready := self._poller.poll(quiet_s * MS):
            now = time.monotonic()
            for descriptor, _ in ready:
                switch = self._switch_of[descriptor]
                changed[switch] = now
                self.drain(switch)

        return changed
