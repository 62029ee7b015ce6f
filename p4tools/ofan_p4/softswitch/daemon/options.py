"""The command line: that of simple_switch_grpc, and beside it rates, depths and delays of ports.

simple_switch_grpc wants general options before `--` and target options after it; here both are
understood on either side. Options that only make sense for BMv2's own tools are accepted and named
in a line, so that scripts keep working.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Generic, NoReturn, TypeVar, get_args

from ofan_p4.softswitch.base.units import PS_PER_US
from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.daemon.gates import NO_WATCHDOG, Thresholds, Watchdog
from ofan_p4.softswitch.ports.pause_frames import PRIORITIES

T = TypeVar("T")
# The value of a port's option: a number, or thresholds.
V = TypeVar("V")

# BMv2's options for tools that this switch does not have: they change no packet.
IGNORED_WITH_VALUE = (
    "--nanolog",
    "--notifications-addr",
    "--debugger-addr",
    "--max-port-count",
    "--log-file-max-size",
    "--log-file-max-files",
    "--dump-packet-data",
    "--max-mc-groups",
    "--max-l1-entries",
    "--max-l2-entries",
)
IGNORED_FLAGS = ("--debugger", "--disable-swap", "--log-flush")
# They say where packets or state come from: ignoring them would mislead.
FROM_INTERFACES = "packets come from the interfaces of -i"
REFUSED = {
    "--use-files": f"{FROM_INTERFACES}; ofan-p4 stf and ofan-p4 trace take them from files",
    "--restore-state": "a switch starts as its program says",
    "--packet-in": FROM_INTERFACES,
    "--dp-grpc-server-addr": FROM_INTERFACES,
}
LEVELS = ("trace", "debug", "info", "warn", "error", "off")
# The names of BMv2's switches, by which tools find them.
NAMES_OF_BMV2 = ("simple_switch", "simple_switch_grpc")
# The port and the queue depth of simple_switch_grpc.
DEFAULT_ADDRESS = "127.0.0.1:9559"
DEFAULT_DEPTH = 64
# The smallest frame of Ethernet.
LEAST_HEADROOM = 64


JSON_VERSION = "2.23"


class UsageError(Exception):
    """The command line cannot be understood; the message is one line."""


@dataclass(frozen=True, slots=True)
class Setting(Generic[V]):
    """A value for all ports, with exceptions for some."""

    everywhere: V | None = None
    by_port: tuple[tuple[int, V], ...] = ()

    def of(self, port: int) -> V | None:
        """Return the value that holds for a port."""
        return dict(self.by_port).get(port, self.everywhere)


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of the gRPC server's certificate."""

    certificate: str
    key: str
    authority: str = ""
    wants_client_certificate: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the switch process."""

    json: str | None
    device_id: int
    interfaces: tuple[tuple[int, str], ...]
    address: str
    cpu_port: int | None
    drop_port: int
    priority_queues: int
    log_file: str | None
    log_level: str
    pcap: str | None
    stats_socket: str | None
    rates_socket: str | None
    seed: int | None
    in_place_of: str | None = None
    thrift_port: int | None = None
    rate_bps: Setting[int] = Setting()
    rate_pps: Setting[int] = Setting()
    depth_packets: Setting[int] = Setting()
    depth_bytes: Setting[int] = Setting()
    gap_bytes: Setting[int] = Setting()
    delay_us: Setting[int] = Setting()
    pfc: Setting[Thresholds] = Setting()
    pfc_watchdog: Watchdog = NO_WATCHDOG
    tls: Tls | None = None
    user: str | None = None
    engine: Engine = "auto"
    ignored: tuple[str, ...] = field(default=())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse(arguments: Sequence[str]) -> Options:
    """Return the options; UsageError where they are wrong."""
    # Before `--` or after it: options mean the same.
    parsed = _parser().parse_args([argument for argument in arguments if argument != "--"])
    for name, reason in REFUSED.items():
        if getattr(parsed, _attribute(name)) is not None:
            raise UsageError(f"{name} is not supported: {reason}")

    if parsed.json is None and not parsed.no_p4:
        raise UsageError("give a JSON file, or --no-p4 to start without one")

    ports = [port for port, _ in parsed.interface]
    repeated = {port for port in ports if ports.count(port) > 1}
    if repeated:
        raise UsageError(f"port {min(repeated)} is given twice")

    options = Options(
        json=None if parsed.no_p4 else parsed.json,
        device_id=parsed.device_id,
        interfaces=tuple(parsed.interface),
        address=parsed.grpc_server_addr,
        # 0 is no CPU port for simple_switch_grpc either.
        cpu_port=parsed.cpu_port or None,
        drop_port=parsed.drop_port,
        priority_queues=parsed.priority_queues,
        log_file=_log_file(parsed.log_file, parsed.in_place_of is not None),
        log_level=parsed.log_level if parsed.log_console or parsed.log_file else "off",
        pcap=parsed.pcap,
        stats_socket=parsed.stats_socket,
        rates_socket=parsed.rates_socket,
        seed=parsed.seed,
        in_place_of=parsed.in_place_of,
        thrift_port=parsed.thrift_port,
        rate_bps=_setting(parsed.rate_bps),
        rate_pps=_setting(parsed.rate_pps),
        depth_packets=_setting(parsed.queue_packets),
        depth_bytes=_setting(parsed.queue_bytes),
        gap_bytes=_setting(parsed.gap_bytes),
        delay_us=_setting(parsed.delay_us),
        pfc=_setting(parsed.pfc),
        pfc_watchdog=parsed.pfc_watchdog,
        tls=_tls(parsed),
        user=parsed.user,
        engine=parsed.engine,
        ignored=tuple(
            name
            for name in (*IGNORED_WITH_VALUE, *IGNORED_FLAGS)
            if getattr(parsed, _attribute(name))
        ),
    )
    _refuse_unable_pauses(options)
    return options


def _refuse_unable_pauses(options: Options) -> None:
    """Raise UsageError for an option that does not go with `--pfc`."""
    if options.pfc == Setting():
        if options.pfc_watchdog != NO_WATCHDOG:
            raise UsageError("--pfc-watchdog needs --pfc")

        return

    _refuse_ports_without_pauses(options)
    if options.depth_bytes != Setting() or options.depth_packets != Setting():
        raise UsageError("--pfc: buffers belong to incoming links, queues have no depth")
    if options.priority_queues > PRIORITIES:
        raise UsageError(f"--pfc: there are {PRIORITIES} priorities, each with a queue")


def _refuse_ports_without_pauses(options: Options) -> None:
    """Raise UsageError for thresholds of no port, and for ports without thresholds or a rate."""
    attached = [port for port, _ in options.interfaces]
    for port, _ in options.pfc.by_port:
        if port not in attached:
            raise UsageError(f"--pfc: there is no port {port}")

    for port in attached:
        if options.pfc.of(port) is None:
            raise UsageError(f"--pfc: port {port} has none, and where one port pauses, all do")
        if not options.rate_bps.of(port):
            raise UsageError(f"--pfc: port {port} needs --rate-bps, as a quantum is 512 bit times")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="softswitch", description="A P4 software switch: runs BMv2 JSON and speaks P4Runtime."
    )
    add = parser.add_argument
    add("json", nargs="?", help="BMv2 JSON to start with")
    add(
        "-i",
        "--interface",
        action="append",
        default=[],
        type=_interface,
        metavar="PORT@IFACE",
        help="attach a port",
    )

    add("--version", action="version", version=f"softswitch {_own_version()}")
    # Programs ask for it before they choose a compiler.
    add(
        "--json-version",
        action="version",
        version=JSON_VERSION,
        help="print the newest format of BMv2 JSON that is understood",
    )
    add("--device-id", type=_natural, default=0, metavar="N", help="device id of P4Runtime (0)")
    add(
        "--no-p4", action="store_true", help="start without a program and wait for the controller's"
    )
    add(
        "--log-console",
        action="store_true",
        help="log to standard output; the level debug tells every step of every packet",
    )

    add("--log-file", metavar="FILE", help="log to a file (with --in-place-of: to FILE.txt)")
    add("-L", "--log-level", choices=LEVELS, default="debug", help="what is logged (debug)")
    add(
        "--pcap", nargs="?", const=".", metavar="DIR", help="write IFACE_in.pcap and IFACE_out.pcap"
    )
    add(
        "--thrift-port",
        type=_port,
        metavar="PORT",
        help="serve BMv2's runtime API on this port of 127.0.0.1 (default: not at all)",
    )

    target = parser.add_argument_group("target options")
    add = target.add_argument
    add(
        "--grpc-server-addr",
        default=DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help=f"P4Runtime ({DEFAULT_ADDRESS})",
    )

    add("--cpu-port", type=_natural, metavar="PORT", help="port of packet-ins and packet-outs")
    add("--drop-port", type=_natural, default=511, metavar="PORT", help="the port that drops (511)")
    add("--priority-queues", type=_positive, default=1, metavar="N", help="queues per port (1)")
    _add_tls(target)
    _add_own(
        parser.add_argument_group("options of this switch ([PORT=]N: for one port, or for all)")
    )

    for name in IGNORED_WITH_VALUE:
        parser.add_argument(name, help=argparse.SUPPRESS)

    for name in REFUSED:
        parser.add_argument(name, nargs="?", const="", help=argparse.SUPPRESS)

    for name in IGNORED_FLAGS:
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)

    return parser


def _own_version() -> str:
    try:
        return version("ofan-p4")
    except PackageNotFoundError:
        return "unknown"


def _add_tls(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--grpc-server-ssl", action="store_true", help="serve P4Runtime over TLS")
    group.add_argument("--grpc-server-cert", default="", metavar="FILE")
    group.add_argument("--grpc-server-key", default="", metavar="FILE")
    group.add_argument("--grpc-server-cacert", default="", metavar="FILE")
    group.add_argument("--grpc-server-with-client-auth", action="store_true")


def _add_own(group: argparse._ArgumentGroup) -> None:
    helps = {
        "--rate-bps": "rate of a queue in bit/s",
        "--rate-pps": "rate of a queue in packets/s",
        "--queue-packets": "depth of a queue in packets"
        f" ({DEFAULT_DEPTH} where nothing else limits it)",
        "--queue-bytes": "depth of a queue in bytes",
        "--gap-bytes": "bytes between packets that cost time but no room",
        "--delay-us": "latency of the link behind a port",
    }

    for name, text in helps.items():
        group.add_argument(
            name, action="append", default=[], type=_per_port, metavar="[PORT=]N", help=text
        )

    group.add_argument(
        "--pfc",
        action="append",
        default=[],
        type=_thresholds,
        metavar="[PORT=]MOST:PAUSE:RESUME",
        help="pause links in place of dropping (IEEE 802.1Qbb): of what comes in by a port MOST"
        " bytes have room, more than PAUSE pause its link, RESUME let it go on",
    )
    group.add_argument(
        "--pfc-watchdog",
        default=NO_WATCHDOG,
        type=_watchdog,
        metavar="US[:ACTION]",
        help="take a longer pause for a storm: drop (default) what is for the port, or ignore it",
    )
    group.add_argument(
        "--stats-socket", metavar="PATH", help="Unix socket that answers with counters as JSON"
    )
    group.add_argument(
        "--rates-socket", metavar="PATH", help="Unix socket that takes new rates of ports as JSON"
    )
    group.add_argument("--user", metavar="NAME", help="become this user when all sockets are open")
    group.add_argument(
        "--engine",
        choices=get_args(Engine),
        default="auto",
        help="run the program as machine code, in Python, or whichever can (default: auto)",
    )
    group.add_argument("--seed", type=_natural, metavar="N", help="seed of random() in programs")
    group.add_argument(
        "--in-place-of",
        choices=NAMES_OF_BMV2,
        help="take this name, so that pkill finds the process, and name the log file as BMv2 does",
    )


def _tls(parsed: argparse.Namespace) -> Tls | None:
    if not parsed.grpc_server_ssl:
        return None
    if not parsed.grpc_server_cert or not parsed.grpc_server_key:
        raise UsageError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")

    return Tls(
        parsed.grpc_server_cert,
        parsed.grpc_server_key,
        parsed.grpc_server_cacert,
        parsed.grpc_server_with_client_auth,
    )


def _log_file(name: str | None, is_in_place_of_bmv2: bool) -> str | None:
    # BMv2 puts this behind every name, whatever it ends in.
    return f"{name}.txt" if name is not None and is_in_place_of_bmv2 else name


def _setting(values: Sequence[tuple[int | None, V]]) -> Setting[V]:
    everywhere = [value for port, value in values if port is None]
    by_port = tuple((port, value) for port, value in values if port is not None)
    return Setting(everywhere[-1] if everywhere else None, by_port)


def _attribute(name: str) -> str:
    return name.strip("-").replace("-", "_")


def _typed(convert: Callable[[str], T], text: str, expected: str) -> T:
    try:
        return convert(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}") from None


def _interface(text: str) -> tuple[int, str]:
    port, _, name = text.partition("@")
    number = _typed(int, port, "PORT@IFACE")
    if number < 0 or not name:
        raise argparse.ArgumentTypeError(f"expected PORT@IFACE, found {text!r}")

    return number, name


def _natural(text: str) -> int:
    number = _typed(lambda value: int(value, 0), text, "a number")
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected a number from 0 up, found {text!r}")

    return number


def _port(text: str) -> int:
    number = _natural(text)
    if number >= 1 << 16:
        raise argparse.ArgumentTypeError(f"expected a TCP port, found {number}")

    return number


def _positive(text: str) -> int:
    number = _natural(text)
    if number == 0:
        raise argparse.ArgumentTypeError("expected a number from 1 up, found 0")

    return number


def _per_port(text: str) -> tuple[int | None, int]:
    port, separator, number = text.rpartition("=")
    return (_natural(port) if separator else None, _natural(number))


def _watchdog(text: str) -> Watchdog:
    """Parse US[:ACTION]."""
    patience, _, action = text.partition(":")
    if not patience.isdecimal() or int(patience) == 0 or action not in ("", "drop", "ignore"):
        raise argparse.ArgumentTypeError(f"{text!r} is no US[:drop] or US[:ignore]")

    return Watchdog(int(patience) * PS_PER_US, drops=action != "ignore")


def _thresholds(text: str) -> tuple[int | None, Thresholds]:
    port, separator, values = text.rpartition("=")
    numbers = [_natural(number) for number in values.split(":")]
    if len(numbers) != len(Thresholds._fields) or numbers != sorted(numbers, reverse=True):
        raise argparse.ArgumentTypeError(
            f"expected MOST:PAUSE:RESUME, none more than the one before, found {values!r}"
        )

    thresholds = Thresholds(*numbers)
    # A frame that fills a buffer must be able to pause its link before the next frame is dropped.
    if thresholds.most - thresholds.pause_above < LEAST_HEADROOM:
        raise argparse.ArgumentTypeError(
            f"a buffer of {thresholds.most} bytes never pauses its link above"
            f" {thresholds.pause_above}: a frame has {LEAST_HEADROOM} or more"
        )

    return (_natural(port) if separator else None, thresholds)
