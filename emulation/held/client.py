"""The client of a held emulation: one question, one answer (`emulation.held.messages`)."""

import socket
from pathlib import Path
from typing import TypeVar

from emulation.held.messages import (
    CHUNK_BYTES,
    SOCKET,
    MessageError,
    Request,
    read_answer,
    request_line,
)
from emulation.mininet.run_folder import RUN_FOLDER
from emulation.remedies import SUDO

AnswerT = TypeVar("AnswerT")


class ControlError(Exception):
    """A command that no emulation takes, or that it refuses; one line."""


class NotHeldError(ControlError):
    """There is no emulation that could take a command."""


def ask(request: Request[AnswerT], run_folder: Path = RUN_FOLDER) -> AnswerT:
    """Return the emulation's answer to a request; raises ControlError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.settimeout(request.answer_seconds)
        try:
            channel.connect(str(run_folder / SOCKET))
            channel.sendall(request_line(request))
            return read_answer(request, _line(channel))
        except MessageError as error:
            raise ControlError(str(error)) from None
        except PermissionError:
            # Only root may run Mininet, so that root's the socket is.
            raise ControlError(
                f"the control socket belongs to root: run this as root, `{SUDO} ...`"
            ) from None
        except (FileNotFoundError, ConnectionRefusedError):
            raise NotHeldError(
                "no emulation is held here:"
                " `sudo $(which ofan) emulate FILE --network mininet --hold` starts one"
            ) from None
        except TimeoutError:
            raise ControlError(
                f"the emulation gave no answer in {request.answer_seconds:.0f} s"
            ) from None
        except ConnectionError:
            raise ControlError("the emulation ended before it answered") from None


def _line(channel: socket.socket) -> bytes:
    """Return all up to the end of the line, which is the end of the reply."""
    data = b""
    while not data.endswith(b"\n"):
        chunk = channel.recv(CHUNK_BYTES)
        if not chunk:
            raise ConnectionResetError

        data += chunk

    return data
