"""`softswitch`: the switch as a daemon with the command line of simple_switch_grpc.

It prints one line when it is ready, ends on SIGTERM and SIGINT, and ends with one line and status 1
(2: wrong options or program) where it cannot start.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from ofan_p4.softswitch.base.errors import PipelineError, SoftswitchError
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.control.trace import Walk
from ofan_p4.softswitch.daemon.clock import Clock
from ofan_p4.softswitch.daemon.dataplane import Dataplane
from ofan_p4.softswitch.daemon.log import open_log
from ofan_p4.softswitch.daemon.options import Options, UsageError, parse
from ofan_p4.softswitch.daemon.ports import open_port
from ofan_p4.softswitch.daemon.privileges import become, take_name
from ofan_p4.softswitch.daemon.sockets import open_link_events
from ofan_p4.softswitch.daemon.stats import OwnSocket, snapshot, take_rates
from ofan_p4.standard_output import StdoutError, guarded_stdout

# Python's own 5 ms would be how long gRPC's thread may keep packets waiting.
SWITCH_INTERVAL_S = 0.0005
# A program of a thousand tables has some 10 MB.
MOST_PROGRAM_BYTES = 256 << 20
COLLECT_RARELY = (5_000, 10, 10)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the switch; the exit status."""
    try:
        with guarded_stdout():
            options = parse(sys.argv[1:] if arguments is None else arguments)
            return run(options)
    except StdoutError as error:
        return _fail(str(error), 1)
    except UsageError as error:
        return _fail(f"{error} (see softswitch --help)", 2)
    except PipelineError as error:
        return _fail(str(error), 2)
    except SoftswitchError as error:
        return _fail(str(error), 1)


def run(options: Options) -> int:
    """Start everything that the options ask for, and stay until a signal."""
    if options.in_place_of is not None:
        take_name(options.in_place_of)

    with ExitStack() as stack:
        clock = Clock()
        draws = Random(options.seed)
        numbers = [number for number, _ in options.interfaces]
        log = open_log(options)
        # In reverse order at the end, however it comes: nothing outlives the process.
        stack.callback(log.close)
        walk = Walk(lambda step: log.write("debug", step.line())) if log.wants("debug") else None
        switch = Switch(
            options.device_id,
            clock,
            random=draws.randint,
            ports=numbers,
            cpu_port=options.cpu_port,
            drop_port=options.drop_port,
            walk=walk,
            engine=options.engine,
        )

        switch.on_log = lambda text: log.write("info", text)
        program = options.json or "none, the controller brings it"
        log.write("info", f"device {options.device_id}, {len(numbers)} ports, program: {program}")
        source = _read(options.json)
        ports = {}

        for number, name in options.interfaces:
            ports[number] = open_port(options, number, name)
            stack.callback(ports[number].close)

        dataplane = Dataplane(switch, ports, clock, link_events=open_link_events(), log=log)
        stack.callback(dataplane.close)
        if options.stats_socket is not None:
            stats = OwnSocket(
                options.stats_socket, lambda _peer: snapshot(switch, ports, dataplane.late_ps)
            )
            stack.callback(stats.close)
            dataplane.others[stats.socket] = stats.answer

        if options.rates_socket is not None:
            rates = OwnSocket(
                options.rates_socket, lambda peer: take_rates(peer, dataplane, clock())
            )
            stack.callback(rates.close)
            dataplane.others[rates.socket] = rates.answer

        if source is not None:
            switch.load(source)

        # The handler only wakes the loop, which then ends by itself.
        dataplane.heed_signals()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: dataplane.stop())

        _serve(options, switch, dataplane, stack)
        _settle()
        dataplane.run()

    return 0


def _settle() -> None:
    """Keep other threads and the garbage collector from holding up packets."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    # Objects loaded by now stay for good: no collection needs to look at them again.
    gc.freeze()
    # Packets make no garbage cycles; P4Runtime calls do.
    gc.set_threshold(*COLLECT_RARELY)


def _serve(options: Options, switch: Switch, dataplane: Dataplane, stack: ExitStack) -> None:
    """Start the P4Runtime server and say that the switch is ready."""
    # gRPC and protobuf take longer to import than everything else: --help and a wrong command line
    # answer without them.
    from ofan_p4.softswitch.daemon.grpc_server import GrpcThread, Servicer  # noqa: PLC0415
    from ofan_p4.softswitch.p4rt.service import P4RuntimeService  # noqa: PLC0415

    service = P4RuntimeService(switch, time.time_ns)
    dataplane.tick = service.tick
    dataplane.next_tick_ps = service.next_tick_ps
    server = GrpcThread(Servicer(service, dataplane), options.address, options.tls)
    port = server.start()
    stack.callback(server.stop)
    if options.thrift_port is not None:
        _serve_thrift(options.thrift_port, switch, dataplane, stack)
    if options.user is not None:
        become(options.user)

    for name in options.ignored:
        _say(f"softswitch: {name} has no meaning here and is ignored")

    attached = " ".join(f"{number}@{name}" for number, name in options.interfaces) or "none"
    _say(
        f"softswitch: device {options.device_id} ready on {_bound(options.address, port)},"
        f" ports {attached}"
    )


def _serve_thrift(port: int, switch: Switch, dataplane: Dataplane, stack: ExitStack) -> None:
    """Start the runtime API's server, and say where it is if anyone may be wondering."""
    from ofan_p4.softswitch.daemon.thrift.server import ThriftServer  # noqa: PLC0415

    thrift = ThriftServer(switch, dataplane, port)
    stack.callback(thrift.close)
    if not port:
        _say(f"softswitch: runtime API on 127.0.0.1:{thrift.port}")


def _bound(address: str, port: int) -> str:
    """Return the address with the port that was really taken, where 0 was asked for."""
    if address.startswith("unix"):
        return address

    return f"{address.rpartition(':')[0]}:{port}"


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None

    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_PROGRAM_BYTES + 1)

        if len(content) > MOST_PROGRAM_BYTES:
            raise PipelineError(f"{path}: more than {MOST_PROGRAM_BYTES >> 20} MiB")

        return content
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {error.strerror}") from None


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _fail(line: str, status: int) -> int:
    sys.stderr.write(f"softswitch: {line}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
