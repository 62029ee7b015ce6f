"""Packets of the user's own: their fields' positions, the fields that hosts read, errors."""

import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.errors import ExperimentError
from fattree.experiment.model import AgentPacket, Packets, Scenario
from hostagent import forms, packets
from hostagent.own_packet import OwnPackets, own_forms, scenario_packets
from hostagent.packets import Ends
from hostagent.transports import roce
from tests.hostagent.own_packets import AFTER_UDP, ALL, HEAD, OTHER, OURS

ENDS = Ends(0x020A00000002, 0x020A00010003, 0x0A000002, 0x0A010003)


def of(name: str) -> OwnPackets:
    return OwnPackets(own_forms(ALL[name][0], "mine.py", 300))


def complaint(text: str) -> str:
    with pytest.raises(ExperimentError) as refused:
        own_forms(text, "mine.py", 300)
    return str(refused.value)


def test_what_is_built_as_ours_is_as_ours() -> None:
    mine, ours = own_forms(OURS, "mine.py", 300), packets.Packets(300).forms
    for my_form, our_form in zip(mine, ours, strict=True):
        end = len(my_form.template) - my_form.hidden
        assert my_form.template[:end] == our_form.template[:end]
        assert my_form._replace(template=b"") == our_form._replace(template=b"")

    written, theirs = OwnPackets(mine), packets.Packets(300)
    assert written.data(ENDS, 7, 3).frame(5, 9) == theirs.data(ENDS, 7, 3).frame(5, 9)
    for less in (1, 44, 299):
        short = [writer.data(ENDS, 7, 3).frame(5, 9, less=less) for writer in (written, theirs)]
        assert short[0] == short[1] and len(short[0]) == 300 - less + 58
    numbers: Any = (5, 1 << 24, True, 8, 0b1001)
    assert written.ack(ENDS, 7, 3).frame(*numbers) == theirs.ack(ENDS, 7, 3).frame(*numbers)


@pytest.mark.parametrize("name", ALL)
@given(st.integers(0, 0xFFFF), st.integers(0, 1 << 25), st.integers(0, 1 << 24), st.randoms())
@settings(max_examples=40, deadline=None)
def test_hosts_read_what_they_have_written(
    name: str, label: int, psn: int, flow: int, draw: random.Random
) -> None:
    flow &= 0xFFFFFF
    mine, run = of(name), draw.randrange(roce.RUNS)
    shared: dict[str, Any] = {"source_ip": ENDS.source_ip, "destination_ip": ENDS.destination_ip}
    shared |= {"psn": psn & 0xFFFFFF, "label": label, "run": run}
    data = mine.data(ENDS, flow, run).frame(label, psn)
    assert mine.parse(data) == roce.Packet(False, flow, marked=False, **shared)
    short = mine.data(ENDS, flow, run).frame(label, psn, less=draw.randrange(1, 300))
    assert len(short) < len(data) and mine.parse(short) == mine.parse(data)
    marked, msn, sacked = draw.random() < 0.5, draw.getrandbits(24), draw.getrandbits(90) << 1
    ack = mine.ack(ENDS, flow, run).frame(label, psn, marked, msn, sacked)
    read = roce.Packet(True, flow, marked=marked, msn=msn, sacked=sacked, **shared)
    assert mine.parse(ack) == read
    assert mine.parse(mine.wrap(ack, 1, 2)) == read
    marked_data = bytearray(data)
    marked_data[mine.forms.data.ip_at + 1] |= roce.CE
    assert mine.parse(bytes(marked_data)) == roce.Packet(False, flow, marked=True, **shared)


@pytest.mark.parametrize("name", ALL)
def test_damaged_frames_are_none_or_others_and_never_an_error(name: str) -> None:
    draw = random.Random(1)
    mine = of(name)
    whole = mine.ack(ENDS, 7).frame(1, 2, True, 3, 0b1010)
    assert all(mine.parse(whole[:length]) is None for length in range(len(whole)))
    for _ in range(500):
        frame = bytearray(whole)
        frame[draw.randrange(len(frame))] ^= 1 << draw.randrange(8)
        mine.parse(bytes(frame))
    for index, mask, _ in mine.forms.ack.signature:
        frame = bytearray(whole)
        frame[index] ^= mask & -mask
        assert mine.parse(bytes(frame)) is None


def test_forms_travel_as_text() -> None:
    both = own_forms(AFTER_UDP, "mine.py", 300)
    assert forms.from_text(forms.as_text(both)) == both


@pytest.mark.parametrize("name", ALL)
def test_the_icrc_is_behind_the_end_of_what_differs(name: str) -> None:
    rows = of(name).forms
    for kind, form in enumerate(rows):
        assert rows.headers <= rows.end(kind) <= len(form.template) - form.hidden


def test_ipv4s_checksum_follows_what_changes_in_it() -> None:
    mine = of("in IPv4")
    for label in (0, 1, 0x1234, 0xFFFF):
        frame = mine.data(ENDS, 7).frame(label, 3)
        header = frame[14:34]
        total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 20, 2))
        assert total % 0xFFFF == 0 and header[4:6] == label.to_bytes(2, "big")


def test_a_header_that_the_scenario_has_no_room_for_is_refused() -> None:
    packet = AgentPacket(file="mine.py", text=AFTER_UDP)
    with pytest.raises(ExperimentError, match=r"mine.py: .* 66 .* set packets.header_bytes=66"):
        scenario_packets(Scenario(agent_packet=packet))
    scenario_packets(Scenario(agent_packet=packet, packets=Packets(header_bytes=66)))


FUNCTIONS = OURS.removeprefix(HEAD)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "mine.py: there is no function data_packet(flow)"),
        ("def data_packet(flow):", "mine.py:1: IndentationError: expected an indented block"),
        ("import nothing_of_the_kind", "mine.py:1: ModuleNotFoundError: No module named 'nothing"),
        ("\n\n1 / 0", "mine.py:3: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "mine.py:1: SystemExit: 3"),
        ("a = 1\n\0", "mine.py:2: SyntaxError: there is a zero byte"),
        (OURS.replace("flow.psn", "flow.pns"), "'types.SimpleNamespace' object has no attribute"),
        (f"{OURS}\ndata_packet = lambda flow: 7", "mine.py: data_packet returns int, not a Scapy"),
        (
            f"{OURS}\ndata_packet = lambda flow: bytes(1 << 18)",
            "mine.py: data_packet returns 262,144 bytes: a frame is shorter",
        ),
        (
            f"{OURS}\nack_packet = lambda flow: bytes(60) + flow.bitmap",
            "mine.py: ack_packet: there is no IPv4 header",
        ),
        (OURS.replace("udp(flow.label)", "udp(7)"), "mine.py: data_packet: flow.label (16 bits)"),
        (
            OURS.replace("udp(flow.label)", "udp(flow.label & 0xFFF)"),
            "mine.py: data_packet: flow.label (16 bits) must stand in the frame, in one piece",
        ),
        (
            OURS.replace('"psn": flow.psn', '"psn": flow.psn * 3 & 0xFFFFFF'),
            "mine.py: data_packet: flow.psn (24 bits) must stand in the frame",
        ),
        (
            OURS.replace(", chksum=0)", ")"),
            "mine.py: data_packet: byte 40 of the frame is made of the flow's fields in a way",
        ),
        (
            AFTER_UDP.replace("low=flow.label & 0x1FFF", "low=flow.label * 3 & 0x1FFF"),
            "mine.py: data_packet: byte 44 of the frame is made of the flow's fields in a way",
        ),
        (
            OURS.replace("opcode=17", "opcode=4").replace("ackreq=1, ", ""),
            "mine.py: nothing tells an ACK from data",
        ),
        (
            OURS.replace("Raw(flow.payload)", "Raw(flow.payload) / Raw(bytes(flow.label & 1))"),
            "mine.py: data_packet: frames differ in length or layers",
        ),
        (
            f"import itertools\ncount = itertools.count()\n{OURS}".replace(
                "becn=", "solicited=next(count) & 1, becn="
            ),
            "mine.py: ack_packet: byte 43 of the frame is made of the flow's fields in a way",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, said: str) -> None:
    rows = complaint(text)
    assert said in rows and "\n" not in rows


@pytest.mark.parametrize(
    "deed",
    [
        "open('FOLDER/file', 'w', buffering=1).write('x\\n')",
        "__import__('subprocess').run(['true'], check=True)",
        "__import__('os').fork()",
        "bytearray(3 << 30)",
        pytest.param(
            "open('/etc/shadow')", marks=pytest.mark.skipif(os.geteuid() != 0, reason="as root")
        ),
        pytest.param(
            "__import__('socket').create_connection(('127.0.0.1', 22))",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="as root"),
        ),
    ],
)
def test_the_users_code_can_do_nothing_but_compute(deed: str, tmp_path: Path) -> None:
    rows = complaint(f"{HEAD}\n{deed}\n{FUNCTIONS}".replace("FOLDER", str(tmp_path)))
    assert "Error: " in rows


@pytest.mark.slow
def test_code_without_an_end_is_ended() -> None:
    assert complaint("while True: pass") == "mine.py: its functions take longer than 5 s"


def test_an_answer_without_an_end_is_not_kept() -> None:
    write = "os.write(fd, b'+' * 65536)"
    flood = (
        f"import os\nfor fd in [*range(3, 9)] * 9999:\n    try: {write}\n    except OSError: pass"
    )
    assert complaint(flood) == "mine.py: its process writes more than 128 MiB"


def test_what_the_users_code_prints_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    own_forms(f"print('+lies')\nimport os\nos.write(1, b'+')\n{OTHER}", "mine.py", 300)
    assert capfd.readouterr() == ("", "")
