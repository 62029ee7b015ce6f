"""Interfaces that go up and down, are deleted and made anew."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress

from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.daemon.bursts import Bursts
from ofan_p4.softswitch.daemon.ports import Port
from ofan_p4.softswitch.daemon.sockets import (
    InterfaceError,
    drain,
    interface_index,
    is_running,
    open_interface,
)


class Links:
    """Follows the interfaces of a switch's ports; `events` is the kernel's socket of changes.

    `on_change` is called for ports that have gone up or down.
    """

    def __init__(
        self,
        switch: Switch,
        ports: Mapping[int, Port],
        *,
        bursts: Bursts,
        events: socket.socket,
        on_change: Callable[[Port], None],
    ) -> None:
        self.events = events
        self._switch = switch
        self._ports = ports
        self._bursts = bursts
        self._on_change = on_change

    def changed(self) -> None:
        """Look at all interfaces again; also to be called when a socket has failed."""
        drain(self.events)
        for port in self._ports.values():
            # The event does not name the interface that has changed.
            index = interface_index(port.name)
            if index != port.index:
                self._follow(port, index)

            # That it was down once would be the answer to the first frame that leaves again.
            port.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            up = bool(port.index) and is_running(port.socket, port.name)
            if up != port.is_up:
                port.is_up = up
                self._switch.set_port_status(port.number, up)
                self._on_change(port)

    def _follow(self, port: Port, index: int) -> None:
        """Take another interface of a port's name for it; the old interface has been deleted."""
        port.forsake()
        # A socket of an interface that is gone is readable for ever, and never has anything.
        self._bursts.renew(port)

        # Not before it is up: kernels forget a socket if its ring is made while its interface comes
        # up. An interface that cannot be opened is tried again at its next change.
        with suppress(InterfaceError):
            if index and is_running(port.socket, port.name):
                port.follow(open_interface(port.name), index)
                self._bursts.renew(port)
