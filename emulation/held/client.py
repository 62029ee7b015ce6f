"""The control socket of a held emulation: where it is, and one question with one answer as JSON
lines.

{"command": "link", "action": "down", "link": "edge0_0-agg0_1"}  ->  {"answer": ...} or {"error": "one line"}
"""

import json
import socket
from pathlib import Path
from typing import Any

from emulation.mininet.run_folder import RUN_FOLDER

SOCKET = "control"
ANSWER_SECONDS = 60.0
CHUNK_BYTES = 1 << 16


class ControlError(Exception):
    """A command that no emulation takes, or that it refuses; one line."""


def ask(command: str, run_folder: Path = RUN_FOLDER, **arguments: Any) -> Any:
    """Return the emulation's answer to a command; raises ControlError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.settimeout(ANSWER_SECONDS)
        try:
            channel.connect(str(run_folder / SOCKET))
            channel.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
            reply = _read(channel)
        except PermissionError:
            raise ControlError("the control socket belongs to root: run this with sudo") from None
        except (FileNotFoundError, ConnectionRefusedError):
            raise ControlError(
                "no emulation is held here: start one with `ofan emulate FILE --hold`"
            ) from None
        except TimeoutError:
            raise ControlError(f"the emulation gave no answer in {ANSWER_SECONDS:.0f} s") from None
        except ConnectionError:
            raise ControlError("the emulation ended before it answered") from None

    if "error" in reply:
        raise ControlError(reply["error"])

    return reply["answer"]


def _read(channel: socket.socket) -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        chunk = channel.recv(CHUNK_BYTES)
        if not chunk:
            raise ConnectionResetError

        data += chunk

    reply: dict[str, Any] = json.loads(data)
    return reply
