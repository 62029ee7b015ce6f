"""A socket that answers every peer that connects, and waits for none."""

import json
import socket
import stat
import threading
from pathlib import Path

from ofan_p4.softswitch.daemon.stats import OwnSocket


def test_a_peer_is_answered_and_nobody_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "own"
    server = OwnSocket(str(path), lambda _peer: {"packets": 5})

    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        server.answer()
        assert json.loads(peer.recv(100)) == {"packets": 5}

    idle = threading.Thread(target=server.answer, daemon=True)
    idle.start()
    idle.join(10)

    assert not idle.is_alive()

    server.close()

    assert not path.exists()
