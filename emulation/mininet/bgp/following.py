"""The kernels' routes on their way to the switches: read when a kernel changes a route."""

from collections.abc import Callable
from functools import partial

from emulation.mininet.bgp.kernel_routes import RouteMonitor, Rows, uplink_weights
from emulation.mininet.bgp.routers import Routers
from emulation.mininet.detection import Informed
from emulation.mininet.loop import Loop


class Following(Informed):
    """Reports a switch's routes whenever its kernel has changed a route."""

    def __init__(
        self, routers: Routers, loop: Loop, on_routes: Callable[[int, Rows], object]
    ) -> None:
        self._routers = routers
        self._loop = loop
        self._on_routes = on_routes
        self._monitor = RouteMonitor(routers)
        # Cores have no choice to make.
        self._watched = [
            (channel, switch)
            for channel, switch in self._monitor.channels
            if routers.tree.uplinks(switch)
        ]
        for channel, switch in self._watched:
            loop.watch(channel, partial(self._read, switch))

        # In this order: a change before this reading is reported twice, and no change is missed.
        for _, switch in self._watched:
            self._read(switch)

    def close(self) -> None:
        """Stop listening."""
        for channel, _ in self._watched:
            self._loop.unwatch(channel)

        self._monitor.close()

    def _read(self, switch: int) -> None:
        self._monitor.drain(switch)
        self._on_routes(switch, uplink_weights(self._routers, switch))
