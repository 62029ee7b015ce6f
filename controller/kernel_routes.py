"""Switches' BGP routes in their kernels, and when a kernel changes them, over netlink."""

import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyroute2 import IPRoute
from pyroute2.netlink.rtnl import RTMGRP_IPV4_ROUTE

from controller.routes import edge_prefix
from fattree.shape.addressing import dotted, interface_name
from fattree.shape.topology import FatTree

# Of <linux/rtnetlink.h>: routes that BGP has made, and next hops behind a dead interface.
RTPROT_BGP = 186
RTNH_F_DEAD = 1
MESSAGE_BYTES = 1 << 16
BUFFER_BYTES = 1 << 22
MS = 1_000

Rows = NDArray[np.int64]


class KernelRoutes:
    """The routes of one switch, from the kernel of the network namespace in which it is made.

    Readable when the kernel has changed a route.
    """

    def __init__(self, tree: FatTree, switch: int) -> None:
        self._shape = tree.edges, tree.uplinks(switch)
        first = tree.uplink_port(switch, 0)
        self._uplinks = {
            socket.if_nametoindex(interface_name(tree, switch, first + uplink)): uplink
            for uplink in range(tree.uplinks(switch))
        }
        prefixes = (edge_prefix(tree, edge) for edge in range(tree.edges))
        self._edges = {
            (dotted(network), length): edge for edge, (network, length) in enumerate(prefixes)
        }
        # A socket stays in the namespace in which it was opened.
        self._netlink = IPRoute()
        self._news = route_news()

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._news.fileno()

    def close(self) -> None:
        """Stop listening."""
        self._netlink.close()
        self._news.close()

    def drain(self) -> None:
        """Take the kernel's messages: the routes are read anew, in full."""
        _drain(self._news)

    def weights(self) -> Rows:
        """Return the weights (destination edges, uplinks) of the routes, 0 without a route."""
        rows = np.zeros(self._shape, dtype=np.int64)
        for route in self._netlink.get_routes(family=socket.AF_INET):
            edge = self._edges.get((route.get_attr("RTA_DST"), route["dst_len"]))
            if edge is None or route["proto"] != RTPROT_BGP:
                continue

            for interface, weight in _next_hops(route):
                if interface in self._uplinks:
                    rows[edge, self._uplinks[interface]] = weight

        return rows


def _next_hops(route: Any) -> list[tuple[int, int]]:
    """Return (interface, weight) of a route's next hops that are alive."""
    hops = route.get_attr("RTA_MULTIPATH")
    # A route with a single next hop has no list, and no weight.
    if hops is None:
        return [] if route["flags"] & RTNH_F_DEAD else [(route.get_attr("RTA_OIF"), 1)]

    # The kernel counts weights from 0.
    return [(hop["oif"], hop["hops"] + 1) for hop in hops if not hop["flags"] & RTNH_F_DEAD]


def route_news() -> socket.socket:
    """Return a socket that is readable when this namespace's kernel has changed a route."""
    news = socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, 0
    )
    news.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    news.bind((0, RTMGRP_IPV4_ROUTE))
    return news


def _drain(news: socket.socket) -> None:
    # Also an overrun of the buffer (ENOBUFS) is news.
    with suppress(OSError):
        while news.recv(MESSAGE_BYTES):
            pass


class RouteMonitor:
    """Hears from the kernels of many switches, by their `route_news`, when they change a route."""

    def __init__(self, news: Mapping[int, socket.socket]) -> None:
        self._poller = select.poll()
        self._news = {channel.fileno(): (switch, channel) for switch, channel in news.items()}
        for channel in news.values():
            self._poller.register(channel, select.POLLIN)

    def close(self) -> None:
        """Stop listening."""
        for _, channel in self._news.values():
            channel.close()

    def until_quiet(self, quiet_s: float) -> dict[int, float]:
        """Return when each switch last changed a route (CLOCK_MONOTONIC), after a quiet time."""
        changed: dict[int, float] = {}
        while ready := self._poller.poll(quiet_s * MS):
            now = time.monotonic()
            for descriptor, _ in ready:
                switch, channel = self._news[descriptor]
                changed[switch] = now
                _drain(channel)

        return changed
