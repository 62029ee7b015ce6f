"""The routes in each switch's kernel, and when the kernel changes them."""

import json
import select
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from math import gcd

from pyroute2.netlink.rtnl import RTMGRP_IPV4_ROUTE

from emulation.mininet.bgp.configuration import edge_network
from emulation.mininet.bgp.routers import Routers
from fattree.shape.addressing import interface_name

MESSAGE_BYTES = 1 << 16
BUFFER_BYTES = 1 << 22
MS = 1_000

# Weights of uplinks (numbered from 0) by destination edge.
Weights = Mapping[int, Mapping[int, int]]


def reduced(weights: Mapping[int, int]) -> dict[int, int]:
    """Return weights divided by their greatest common divisor: schedules repeat after their sum."""
    divisor = gcd(*weights.values())
    return {uplink: weight // divisor for uplink, weight in sorted(weights.items())}


def north(routers: Routers, switch: int) -> Weights:
    """Return the weights of a switch's uplinks to each edge that it reaches through them."""
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

    routes: dict[int, dict[int, int]] = {}
    for route in json.loads(done.stdout or "[]"):
        # A route with a single next hop has no list, and no weight.
        hops = route.get("nexthops") or [route]
        alive = [hop for hop in hops if "dead" not in hop.get("flags", ())]
        if route["dst"] in edges and all(hop.get("dev") in uplinks for hop in alive):
            routes[edges[route["dst"]]] = {
                uplinks[hop["dev"]]: hop.get("weight", 1) for hop in alive
            }

    return routes


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
