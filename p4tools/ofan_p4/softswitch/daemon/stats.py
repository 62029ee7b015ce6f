"""Two sockets: the first gives the counters of all packets, the second sets the rates of ports.

connect to the Unix socket, read until the end: one JSON object with device_id, counts, ports

received + copies = transmitted + packet_ins + every drop in `counts` + queue_drops, priority_drops
and waiting_drops of all ports + waiting packets; transmitted = every tx_packets and tx_failed of
the ports + waiting packets. So a harness can check that nothing is lost without being counted.
tx_no_buffers is a part of tx_failed: the kernel had no buffers for these frames and counts them as
drops of the interface too, so a sum of both leaves them out. kernel_drops are frames that the
kernel dropped before the switch saw them. Control frames (`--pfc`) are in none of these sums.

On the socket for rates it is the client that speaks first: one line, {"rates_bps": {PORT: rate}},
answered by {} or {"error": TEXT}. A frame that is being sent is sent to its end as it was; those
that wait behind it take the new rate, in their order.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ofan_p4.softswitch.base.errors import SoftswitchError
from ofan_p4.softswitch.control.strays import strays
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.daemon.dataplane import Dataplane
from ofan_p4.softswitch.daemon.ports import Port

# A peer that neither reads nor writes holds up packets no longer than this.
PATIENCE_S = 0.5
MOST_BYTES = 1 << 16


class SocketError(SoftswitchError):
    """A Unix socket cannot be made."""


class OwnSocket:
    """A Unix socket, for its owner only, that answers every connection with one JSON object.

    `reply` may listen to the peer before.
    """

    def __init__(self, path: str, reply: Callable[[socket.socket], dict[str, Any]]) -> None:
        self._path = Path(path)
        self._reply = reply
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._replace_stale()
        # The socket gets its rights when it is made, not a moment later.
        before = os.umask(0o177)

        try:
            self.socket.bind(path)
        except OSError as error:
            raise SocketError(f"cannot make the socket {path}: {error.strerror or error}") from None
        finally:
            os.umask(before)

        self.socket.listen()
        self.socket.setblocking(False)

    def answer(self) -> None:
        """Accept one connection and send it everything."""
        try:
            peer, _ = self.socket.accept()
        except OSError:
            return

        with peer, suppress(OSError):
            peer.settimeout(PATIENCE_S)
            peer.sendall(json.dumps(self._reply(peer)).encode())

    def close(self) -> None:
        """Remove the socket."""
        self.socket.close()
        # A process that has become another user may no longer remove it; the next process replaces
        # it.
        with suppress(OSError):
            self._path.unlink()

    def _replace_stale(self) -> None:
        """Remove the socket of a process that is gone; a live process is an error."""
        try:
            if not stat.S_ISSOCK(self._path.stat().st_mode):
                raise SocketError(f"{self._path} exists and is not a socket")
        except FileNotFoundError:
            return

        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if probe.connect_ex(str(self._path)) == 0:
                raise SocketError(f"another process answers on {self._path}")

        self._path.unlink(missing_ok=True)


def snapshot(switch: Switch, ports: dict[int, Port], late_ps: int) -> dict[str, Any]:
    """Return all counters of a switch and its ports, and how late it was at most."""
    now_ps = switch.clock()
    return {
        "device_id": switch.device_id,
        "has_pipeline": switch.pipeline is not None,
        "late_ps": late_ps,
        "counts": asdict(switch.counts),
        "strays": list(strays([switch.pipeline])) if switch.pipeline is not None else [],
        "ports": {str(number): port.statistics(now_ps) for number, port in ports.items()},
    }


def take_rates(peer: socket.socket, dataplane: Dataplane, now_ps: int) -> dict[str, Any]:
    """Give ports the rates that a peer asks for; return nothing, or the error."""
    try:
        of_numbers = json.loads(_line(peer))["rates_bps"]
        rates = {dataplane.ports[int(number)]: rate for number, rate in of_numbers.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return {"error": f'no {{"rates_bps": {{PORT: rate}}}} of ports here: {error}'}

    if any(type(rate) is not int or rate <= 0 for rate in rates.values()):
        return {"error": "a rate is a positive number of bit/s"}

    for port, rate in rates.items():
        for queue in port.queues:
            queue.set_rate_bps(now_ps, rate)

        dataplane.rates_changed(port)

    return {}


def _line(peer: socket.socket) -> bytes:
    line = b""
    while b"\n" not in line and len(line) < MOST_BYTES and (more := peer.recv(MOST_BYTES)):
        line += more

    return line
