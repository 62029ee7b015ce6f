import json
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether

import ofan
from emulation.commands.pcap import decode, pcap, text
from emulation.errors import UnsupportedError
from emulation.taps import tap_named
from fattree.shape.topology import FatTree
from hostagent.build import ends
from hostagent.packets import AckFrames, DataFrames, wrap
from hostagent.segment_routes import SegmentRoutes
from tests.doors import ROOT

TREE = FatTree(4)
HERE_TO_THERE = ends(TREE, 0, 15)


def test_a_data_packet_reads_as_one_line():
    line = decode(0.25, DataFrames(HERE_TO_THERE, 7, 1024).frame(40_321, 5))
    assert (
        text(line) == "    0.250000000  DATA   h0_0_0 > h3_1_1  flow 7  psn 5  label 40321  1082 B"
    )


def test_an_ack_shows_its_mark_and_bitmap():
    line = decode(0, AckFrames(ends(TREE, 15, 0), 7).frame(9, 12, True, 10, 0b1101100))
    assert text(line).endswith(
        "flow 7  psn 12  label 9  66 B  received 10  sacked 12-13,15-16  marked"
    )


def test_a_tunnel_shows_its_waypoint():
    frame = wrap(
        DataFrames(HERE_TO_THERE, 7, 1024).frame(1, 2), HERE_TO_THERE.source_ip, 0x0A040101
    )
    assert text(decode(0, frame)).endswith("via 10.4.1.1")


def test_micro_segments_and_the_outer_mark_are_shown():
    frame = bytearray(DataFrames(HERE_TO_THERE, 7, 1024).frame(1, 2))
    sent = bytearray(SegmentRoutes(TREE, 0).routed(bytes(frame), 15, label=1))
    sent[15] |= 0x30
    line = text(decode(0, bytes(sent)))
    assert line.endswith("1122 B  marked  via 5f00:0:e004:e003:e004:e002:f000:0")
    assert decode(0, bytes(sent[:50])).what == "OTHER"


def test_a_flipped_bit_is_shown():
    frame = bytearray(DataFrames(HERE_TO_THERE, 7, 1024).frame(1, 2))
    frame[200] ^= 1
    assert text(decode(0, bytes(frame))).endswith("ICRC WRONG")


def test_a_pause_shows_its_priorities_and_quanta():
    pause = MACControlClassBasedFlowControl(c0_enabled=1, c0_pause_time=9, c3_enabled=1)
    line = decode(1, bytes(Ether(dst="01:80:c2:00:00:01") / pause))
    priorities = "priority 0 for 9 quanta, priority 3 for 0 quanta"
    assert text(line) == f"    1.000000000  PAUSE  {priorities}  60 B"


def test_a_foreign_frame_is_summarised():
    assert decode(0, b"\xff" * 60, "ARP who has").what == "OTHER"


@pytest.mark.parametrize(
    "content",
    [b"", b"no capture", struct.pack("IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"\0"],
)
def test_a_broken_file_is_one_line_or_nothing(tmp_path, content):
    path = tmp_path / "broken.pcap"
    path.write_bytes(content)
    result = CliRunner().invoke(pcap, [str(path)])
    assert "Traceback" not in result.output
    assert result.exit_code == 0 or "cannot be read as a capture" in result.output


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("edge0_1:9", "ports 1 to 4"),
        ("h9_0_0", "no host"),
        ("edge7_0:1", "no switch"),
        ("x", "not a host"),
        ("core0_0:a", "ports"),
    ],
)
def test_a_port_that_does_not_exist_is_refused(name, reason):
    with pytest.raises(UnsupportedError, match=reason):
        tap_named(TREE, name)


def test_ports_are_named_as_in_the_topology():
    assert tap_named(TREE, "edge0_1:3").interface == "e0_1-3"
    assert tap_named(TREE, "h0_1_0").host == 2


def test_a_program_and_the_load_balancer_that_it_is_like_have_captures_of_their_own(
    tmp_path: Path,
) -> None:
    program = ROOT / "experiments/gallery/weighted_round_robin.p4"
    arguments = ("emulate", "--program", str(program), "--policies", "simple_rr", "--k", "2")
    traffic = ("--message-bytes", "9000", "--pcap", "edge0_0:2", "--output", str(tmp_path / "out"))
    done = CliRunner().invoke(ofan.cli, [*arguments, *traffic])
    assert done.exit_code == 0, done.output
    names = {file.name for file in (tmp_path / "out").glob("*.pcapng")}
    assert names == {"program-1-edge0_0-2.pcapng", "simple_rr-1-edge0_0-2.pcapng"}
    shown = CliRunner().invoke(
        ofan.cli, ["pcap", str(tmp_path / "out/program-1-edge0_0-2.pcapng"), "--json"]
    )
    assert {json.loads(line)["what"] for line in shown.output.splitlines()} == {"DATA", "ACK"}
