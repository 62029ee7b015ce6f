"""The operational state of the links between switches, from the kernel.

Netlink sends it to listeners in the network's namespace (RFC 2863's states; a veth is down as soon
as either end is), so that no polling is needed. Where messages were lost the whole state is read
again.
"""

import errno
import json
import socket
import subprocess
from collections.abc import Iterator

from pyroute2.netlink.rtnl import RTMGRP_LINK
from pyroute2.netlink.rtnl.marshal import MarshalRtnl

from controller.fabric_controller import LinkChange
from fattree.shape.addressing import interface_name
from fattree.shape.topology import FatTree

# Room for the news of many interfaces at once: those of a core's links that fail together.
BUFFER_BYTES = 1 << 20
MESSAGE_BYTES = 1 << 16


class LinkMonitor:
    """Listens in this thread's network namespace from when it is made.

    Readable when there is something to `read`.
    """

    def __init__(self, tree: FatTree) -> None:
        self._link_of = {
            interface_name(tree, *end): link
            for link in range(tree.links)
            for end in tree.link_ends(link)
        }

        self._ends = {
            link: [interface_name(tree, *end) for end in tree.link_ends(link)]
            for link in range(tree.links)
        }

        self._marshal = MarshalRtnl()
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, 0
        )
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self._socket.bind((0, RTMGRP_LINK))

        # In this order: a change between the two is reported twice, and no change is missed.
        self._is_up = dict.fromkeys(self._link_of, True)
        self._is_up.update(self._listed())
        self.down = self._links_down()

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._socket.fileno()

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    def read(self) -> LinkChange:
        """Return how links have changed since the last call; both ends of a link must be up."""
        # The interfaces of hosts' links are none of the controller's business.
        for name, is_up in self._messages():
            if name in self._is_up:
                self._is_up[name] = is_up

        before = self.down
        self.down = self._links_down()
        return LinkChange(self.down - before, before - self.down)

    def _messages(self) -> Iterator[tuple[str, bool]]:
        while True:
            try:
                data = self._socket.recv(MESSAGE_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise

                # The kernel could not deliver some: the state of all is asked for.
                yield from self._listed()
                continue

            for message in self._marshal.parse(data):
                yield (
                    str(message.get_attr("IFLA_IFNAME")),
                    message.get_attr("IFLA_OPERSTATE") == "UP",
                )

    def _listed(self) -> Iterator[tuple[str, bool]]:
        """Yield the state of all interfaces, asked for."""
        done = subprocess.run(["ip", "-j", "link"], capture_output=True, text=True, check=True)
        for row in json.loads(done.stdout):
            yield row["ifname"], row["operstate"] == "UP"

    def _links_down(self) -> frozenset[int]:
        return frozenset(
            link for link, ends in self._ends.items() if not all(self._is_up[name] for name in ends)
        )
