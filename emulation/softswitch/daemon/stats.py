"""Counters for whoever wants to know where every packet went.

connect to the Unix socket, read until the end: one JSON object with device_id, counts, ports

received + copies = transmitted + packet_ins + every drop in `counts` + queue_drops, priority_drops
and waiting_drops of all ports + what still waits; transmitted = every tx_packets and tx_failed of
the ports + what still waits. So a harness can check that nothing is lost without being counted.
tx_no_buffers is a part of tx_failed: the kernel had no buffers for these frames and counts them as
drops of the interface too, so whoever adds up both leaves them out. kernel_drops are frames that
the kernel dropped before the switch saw them.
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

from emulation.softswitch.daemon.ports import Port
from emulation.softswitch.errors import SoftswitchError
from emulation.softswitch.switch import Switch


class StatsError(SoftswitchError):
    """The statistics socket cannot be made."""


class StatsSocket:
    """A Unix socket, for its owner only, that answers every connection with one `snapshot`."""

    def __init__(self, path: str, snapshot: Callable[[], dict[str, Any]]) -> None:
        self._path = Path(path)
        self._snapshot = snapshot
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._replace_stale()
        # The socket gets its rights when it is made, not a moment later.
        before = os.umask(0o177)

        try:
            self.socket.bind(path)
        except OSError as error:
            raise StatsError(
                f"cannot make the statistics socket {path}: {error.strerror or error}"
            ) from None
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
            # A peer that does not read holds up packets no longer than this.
            peer.settimeout(0.5)
            peer.sendall(json.dumps(self._snapshot()).encode())

    def close(self) -> None:
        """Remove the socket."""
        self.socket.close()
        # Whoever has become another user may no longer remove it; the next one replaces it.
        with suppress(OSError):
            self._path.unlink()

    def _replace_stale(self) -> None:
        """Remove the socket of a process that is gone; a live one is an error."""
        try:
            if not stat.S_ISSOCK(self._path.stat().st_mode):
                raise StatsError(f"{self._path} exists and is not a socket")
        except FileNotFoundError:
            return

        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if probe.connect_ex(str(self._path)) == 0:
                raise StatsError(f"another process answers on {self._path}")

        self._path.unlink(missing_ok=True)


def snapshot(switch: Switch, ports: dict[int, Port]) -> dict[str, Any]:
    """Return all counters of a switch and its ports."""
    now_ps = switch.clock()
    return {
        "device_id": switch.device_id,
        "has_pipeline": switch.pipeline is not None,
        "counts": asdict(switch.counts),
        "ports": {str(number): port.statistics(now_ps) for number, port in ports.items()},
    }
