"""The command line of simple_switch_grpc, ours beside it, and one line for an error."""

from __future__ import annotations

import pytest

from ofan_p4.softswitch.daemon.gates import Thresholds
from ofan_p4.softswitch.daemon.options import Setting, UsageError, parse
from ofan_p4.softswitch.daemon.process import main


def test_a_script_for_simple_switch_grpc_works() -> None:
    line = "--no-p4 -i 1@s1-eth1 --interface 2@s1-eth2 --device-id 7 "
    line += "--log-console -L warn --thrift-port 9091 "
    line += "--pcap -- --grpc-server-addr 0.0.0.0:50051 --cpu-port 255 --priority-queues 8"
    options = parse(line.split())

    assert options.interfaces == ((1, "s1-eth1"), (2, "s1-eth2"))
    assert (options.json, options.device_id, options.address) == (None, 7, "0.0.0.0:50051")
    assert (options.cpu_port, options.priority_queues, options.pcap) == (255, 8, ".")
    assert (options.log_level, options.thrift_port, options.ignored) == ("warn", 9091, ())


def test_a_port_may_be_0() -> None:
    assert parse(["--no-p4", "-i", "0@s1-eth0"]).interfaces == ((0, "s1-eth0"),)


def test_the_default_address_is_loopback_and_the_log_is_off() -> None:
    options = parse(["program.json"])

    assert (options.json, options.address, options.log_level) == (
        "program.json",
        "127.0.0.1:9559",
        "off",
    )
    assert (options.device_id, options.cpu_port, options.drop_port) == (0, None, 511)


def test_the_log_file_is_named_as_bmv2_does_under_bmv2s_name_alone() -> None:
    line = ["p.json", "--log-file", "ss.log"]

    assert parse(line).log_file == "ss.log"

    for name in ("simple_switch", "simple_switch_grpc"):
        assert parse([*line, "--in-place-of", name]).log_file == "ss.log.txt"
        assert parse(["p.json", "--in-place-of", name]).log_file is None


def test_settings_hold_for_all_ports_or_for_one() -> None:
    options = parse(
        [
            "p.json",
            "--rate-bps",
            "1000",
            "--rate-bps",
            "3=5",
            "--queue-bytes",
            "2=800",
            "--delay-us",
            "10",
        ]
    )

    assert [options.rate_bps.of(port) for port in (1, 3)] == [1000, 5]
    assert [options.depth_bytes.of(port) for port in (1, 2)] == [None, 800]
    assert options.delay_us == Setting(10)


def test_thresholds_of_pauses_hold_for_all_ports_or_for_one() -> None:
    line = "p.json -i 1@a -i 3@b --rate-bps 9 --pfc 9000:5000:4000 --pfc 3=900:500:400"
    options = parse(line.split())

    assert options.pfc.of(1) == Thresholds(most=9_000, pause_above=5_000, resume_at=4_000)
    assert options.pfc.of(3) == Thresholds(most=900, pause_above=500, resume_at=400)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "JSON"),
        ("p.json -i 1", "PORT@IFACE"),
        ("p.json -i x@eth0", "PORT@IFACE"),
        ("p.json --interface=-1@eth0", "PORT@IFACE"),
        ("p.json -i 1@a -i 1@b", "twice"),
        ("p.json --cpu-port many", "number"),
        ("p.json --priority-queues 0", "1 up"),
        ("p.json --rate-bps 1=fast", "number"),
        ("p.json --use-files 3", "not supported: .* from files"),
        ("p.json --use-files", "not supported"),
        ("p.json --dp-grpc-server-addr 0.0.0.0:50051", "not supported: .* interfaces of -i"),
        ("p.json --thrift-port 65536", "TCP port"),
        ("p.json --grpc-server-ssl", "--grpc-server-cert"),
        ("p.json --no-such-option", "no-such-option"),
        ("p.json --log-level loud", "loud"),
        ("p.json --in-place-of another_switch", "another_switch"),
        ("p.json --pfc 9:5", "MOST:PAUSE:RESUME"),
        ("p.json --pfc 9:5:6", "none more than the one before, found '9:5:6'"),
        ("p.json --pfc 1=9:x:1", "a number"),
        ("p.json --pfc 10:0:0", "a buffer of 10 bytes never pauses its link above 0"),
        ("p.json --pfc 1000:1000:0", "a frame has 64 or more"),
        ("p.json -i 1@a --rate-bps 9 --pfc 900:500:100 --pfc 7=900:500:100", "no port 7"),
        ("p.json -i 1@a -i 2@b --rate-bps 9 --pfc 1=900:500:100", "port 2 has none"),
        ("p.json -i 1@a --rate-bps 2=9 --pfc 900:500:100", "port 1 needs --rate-bps"),
        ("p.json -i 1@a --rate-bps 9 --pfc 900:500:100 --queue-bytes 9", "queues have no depth"),
        ("p.json -i 1@a --rate-bps 9 --pfc 900:500:100 --priority-queues 9", "8 priorities"),
    ],
)
def test_what_is_wrong_is_one_line_and_status_2(
    line: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse(line.split())

    assert main(line.split()) == 2
    assert capsys.readouterr().err.count("\n") == 1
