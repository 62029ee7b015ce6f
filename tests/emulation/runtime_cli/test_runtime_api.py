"""The runtime API itself: several clients, and bytes that are no call at all."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.messages import CallError, MirroringError, Refusal
from ofan_p4.softswitch.daemon.thrift.rpc import FAILURE, read_header
from ofan_p4.softswitch.daemon.thrift.wire import Kind, Reader, WireError, members_of, read_members


def entry(key: int) -> dict[str, Any]:
    param = m.MatchParam(m.MatchType.EXACT, exact=m.Exact(key.to_bytes(6, "big")))
    return {
        "table_name": "I.l2",
        "match_key": [param],
        "action_name": "I.send",
        "action_data": [b"\0\1"],
        "options": m.AddEntryOptions(),
    }


def test_clients_see_what_others_have_done(running: Any) -> None:
    first, second = running.client(), running.client()
    for key in (1, 2):
        first.call("standard:bm_mt_add_entry", **entry(key))

    second.call("standard:bm_mt_delete_entry", table_name="I.l2", entry_handle=0)
    (remaining,) = first.call("standard:bm_mt_get_entries", table_name="I.l2")

    assert (remaining.entry_handle, remaining.match_key[0].exact) == (1, m.Exact(bytes(5) + b"\2"))
    assert (remaining.action_entry.action_name, remaining.action_entry.action_data) == (
        "I.send",
        [b"\0\1"],
    )

    with pytest.raises(Refusal) as refused:
        first.call("simple_switch:mirroring_session_delete", mirror_id=3)

    assert refused.value.code is MirroringError.SESSION_NOT_FOUND

    with pytest.raises(CallError, match="this switch has context 0 only, not 1"):
        first.call("standard:bm_mt_get_entries", cxt_id=1, table_name="I.l2")

    first.close()
    second.close()


def test_entries_of_the_program_have_handles(running: Any) -> None:
    client = running.client()
    (const,) = client.call("standard:bm_mt_get_entries", table_name="I.fixed")

    assert (const.entry_handle, const.match_key[0].exact) == (0, m.Exact(b"\x88\xb5"))

    client.close()


def message(name: str, arguments: bytes = b"\0") -> bytes:
    return struct.pack(">II", 0x80010001, len(name)) + name.encode() + bytes(4) + arguments


def test_methods_that_are_not_there_are_refused_by_name(running: Any) -> None:
    with socket.create_connection(("127.0.0.1", running.port), 30) as sock:
        # Its arguments are passed over: the next call is understood.
        sock.sendall(message("standard:bm_swap_configs", b"\x0b\0\1\0\0\0\2ab\0") * 2)
        reader = Reader(sock.makefile("rb"))
        for _ in range(2):
            assert read_header(reader)[1] == "standard:bm_swap_configs"
            answer = read_members(FAILURE, reader, "failure")
            assert answer == {
                "message": "bm_swap_configs is not supported by this switch",
                "type": 1,
            }


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        message("standard:bm_mt_get_entries"),
        message("standard:bm_mt_get_entries", b"\x08\0\1\0\0\0\0\x0b\0\2\x7f\xff\xff\xff"),
        message("standard:bm_mt_get_entries", b"\x08\0\1\0\0\0\0\x0b\0\2\xff\xff\xff\xff"),
        message("standard:bm_mt_get_entries", b"\x08\0\1\0\0\0\0\x08\0\2\0\0\0\0\0"),
        message("standard:nothing", b"\x0c\0\1" * 100),
        struct.pack(">II", 0x80010001, 1 << 30),
    ],
)
def test_what_is_no_call_ends_its_connection_alone(refusing: Any, garbage: bytes) -> None:
    with socket.create_connection(("127.0.0.1", refusing.port), 30) as sock:
        sock.sendall(garbage)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1000) == b""

    client = refusing.client()

    assert client.call("standard:bm_mgmt_get_info").thrift_port == refusing.port

    client.close()


def test_a_taken_port_is_one_line(running: Any) -> None:
    command = [sys.executable, "-m", "ofan_p4.softswitch.daemon.process", "--no-p4"]
    command += ["--grpc-server-addr", "127.0.0.1:0", "--thrift-port", str(running.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"softswitch: cannot listen on 127.0.0.1:{running.port}: Address already in use\n"
    )


def test_fields_that_nobody_knows_are_passed_over() -> None:
    members = members_of({"name": str, "number": bool | None})
    # 9: a list of maps, 1: the name, 2: left out.
    data = b"\x0f\0\x09\x0d\0\0\0\1\x0b\x08\0\0\0\1\0\0\0\1k\0\0\0\7" + b"\x0b\0\1\0\0\0\2ab\0"

    assert read_members(members, Reader(BytesIO(data)), "it") == {"name": "ab", "number": None}

    with pytest.raises(WireError, match="name is missing"):
        read_members(members, Reader(BytesIO(bytes([Kind.STOP]))), "it")


@pytest.mark.slow
def test_silent_connections_make_room(running: Any) -> None:
    """As many as there is room for, which say nothing, and as many that have begun to."""
    for said in (b"", struct.pack(">I", 0x80010001)):
        silent = [socket.create_connection(("127.0.0.1", running.port), 30) for _ in range(300)]
        for sock in silent:
            with suppress(OSError):
                sock.sendall(said)

        time.sleep(1.5)
        clients = [running.client() for _ in range(3)]
        for client in clients:
            assert client.call("standard:bm_mgmt_get_info").thrift_port == running.port

        # Those who call stay, as long as others are silent.
        silent += [socket.create_connection(("127.0.0.1", running.port), 30) for _ in range(20)]
        for client in clients:
            assert client.call("standard:bm_mgmt_get_info").thrift_port == running.port
            client.close()

        for sock in silent:
            sock.close()


@pytest.mark.slow
def test_long_and_slow_calls_end_their_connection(running: Any) -> None:
    with socket.create_connection(("127.0.0.1", running.port), 60) as long:
        long.sendall(
            message("standard:bm_mt_get_entries", b"\x0b\0\2" + struct.pack(">i", 2 << 20))
        )
        assert long.recv(1) == b""

    # Each byte comes in time, and yet the call has a deadline.
    call = message("standard:bm_mt_get_entries", b"\x0b\0\2\0\0\0\x40" + b"x" * 64)
    connection = socket.create_connection(("127.0.0.1", running.port), 60)
    with connection as slow, pytest.raises(OSError):
        for byte in call:
            slow.sendall(bytes([byte]))
            time.sleep(0.25)

    memory = Path(f"/proc/{running.process.pid}/status").read_text()
    peak = next(line for line in memory.splitlines() if line.startswith("VmHWM"))

    assert int(peak.split()[1]) < 500_000
