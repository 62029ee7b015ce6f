"""The kernels' routes on their way to the switches: read when a kernel changes a route."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from emulation.mininet.bgp.kernel_routes import RouteMonitor, north
from emulation.mininet.bgp.routers import Routers
from emulation.mininet.loop import Loop

Rows = NDArray[np.int64]


def weights_of(routers: Routers, switch: int) -> Rows:
    """Return a switch's weights (destination edges, uplinks) from its kernel, 0 without a route."""
    tree = routers.tree
    rows = np.zeros((tree.edges, tree.uplinks(switch)), dtype=np.int64)
    for edge, weights in north(routers, switch).items():
        for uplink, weight in weights.items():
            rows[edge, uplink] = weight

    return rows


class Following:
    """Reports a switch's routes whenever its kernel has changed a route."""

    def __init__(
        self, routers: Routers, loop: Loop, on_routes: Callable[[int, Rows], object]
    ) -> None:
        self._routers = routers
        self._loop = loop
        self._on_routes = on_routes
        self._monitor = RouteMonitor(routers)
        for channel, switch in self._monitor.channels:
            # Cores have no choice to make.
            if routers.tree.uplinks(switch):
                loop.watch(channel, partial(self._read, switch))

    @property
    def sure_ps(self) -> int:
        """Return the time after which the state of all links is known: routes are there at once."""
        return 0

    def lost(self) -> int:
        """Return how many packets of its own have been lost: it sends none on data links."""
        return 0

    def close(self) -> None:
        """Stop listening."""
        for channel, switch in self._monitor.channels:
            if self._routers.tree.uplinks(switch):
                self._loop.unwatch(channel)

        self._monitor.close()

    def _read(self, switch: int) -> None:
        self._monitor.drain(switch)
        self._on_routes(switch, weights_of(self._routers, switch))
