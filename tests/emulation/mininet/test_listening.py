"""Addresses where a switch listens by default: read from the kernel, in a namespace of its own."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.root
LOOPBACK, P4RUNTIME, LISTENS = "0100007F", f"{9559:04X}", "0A"


def listening():
    """Return (address, port) in hexadecimal of the sockets that listen on TCP here.

    Loopback's IPv6 form is 32 digits.
    """
    tables = (
        Path(f"/proc/thread-self/net/{name}").read_text().splitlines()[1:]
        for name in ("tcp", "tcp6")
    )
    rows = [line.split() for table in tables for line in table]
    return {tuple(row[1].split(":")) for row in rows if row[3] == LISTENS}


def test_p4runtime_is_on_loopback_alone(namespace, tmp_path):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with subprocess.Popen(
        [sys.executable, "-m", "ofan_p4.softswitch.daemon.process", "--no-p4", "--device-id", "1"],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            end = time.monotonic() + 60
            while not (listeners := listening()) and time.monotonic() < end:
                time.sleep(0.1)
        finally:
            os.kill(process.pid, 15)
    assert listeners == {(LOOPBACK, P4RUNTIME)}
