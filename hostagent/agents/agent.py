"""The host agent: one process that sends and receives for many hosts, through packet sockets.

The agent and its parent exchange JSON lines over a socket, the agent's standard input:

    {"hosts": [[host, pid, interface], ...]}   opens the sockets, inside namespaces
        -> {"ready": hosts}
    {"run": scenario, "number": n, ...}        builds its part of a run; "files": {path: base64},
                                               "forms": those of packets of the user's
        -> {"armed": flows}
    {"start_ns": instant}                      runs it
        -> {"run": n, "finished", "flows", "counts"}, when it has ended; flows are
           [flow, start_ps, first_ps, done_ps, {counter: its sender's count}]
    {"again": true}                            takes in packets since the last run's end
        -> the same report, as it is now
    {"failed": [link, ...], "slow": [[link, up, down], ...]}  routes hold for this from now on
    {"stop": true}                             ends the run early
    {"progress": true}                         asks how far a run is
        -> {"progress": [[flow, acknowledged, start_ps, done_ps, sent, heard_ps], ...]}

A refusal is answered with {"error": one line}.

`start_ns` is a CLOCK_MONOTONIC instant, the same for all agents: the run's time 0. Between
deadlines the agent sleeps.
"""

import gc
import json
import select
import signal
import socket
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from heapq import heappop, heappush
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fattree.counters import SENDER_COUNTERS, kept
from fattree.errors import FabricError
from fattree.experiment.model import Scenario, with_files
from fattree.routes.demand import Demand
from fattree.routes.failures import Links
from fattree.routes.slow_links import FULL, Slow, SlowLink, host_shares
from fattree.units import PS_PER_NS, PS_PER_SECOND
from hostagent.agents.nic import Counts, Nic, link_times, open_link
from hostagent.agents.process import die_with_parent, give_up_root, wake_on_time
from hostagent.build import endpoints
from hostagent.own_packet import take
from hostagent.transports.state import NEVER

# A tenth of a second: how late the end of a run may be noticed when no packet comes any more.
LONGEST_SLEEP_PS = 10**11
LINE_BYTES = 1 << 16
# The longest wait of an ended run for packets that are still under way: 10 s.
LONGEST_DRAIN_PS = 10**13


class Channel:
    """JSON lines over a stream socket; `fileno` is for `select`."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self._partial = b""
        self._lines: list[bytes] = []

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self.stream.fileno()

    @property
    def is_hung_up(self) -> bool:
        """Return whether the other end is closed."""
        poll = select.poll()
        poll.register(self.stream, 0)
        return any(events & select.POLLHUP for _, events in poll.poll(0))

    @property
    def has_message(self) -> bool:
        """Return whether a whole message has been read, which the descriptor does not show."""
        return bool(self._lines)

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.stream.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any] | None:
        """Wait for the next message; None at the end."""
        while not self._lines:
            data = self.stream.recv(LINE_BYTES)
            if not data:
                return None

            *lines, self._partial = (self._partial + data).split(b"\n")
            self._lines += lines

        message: dict[str, Any] = json.loads(self._lines.pop(0))
        return message


@dataclass(slots=True)
class Order:
    """One run, by its number: `limit_ps` ends it unfinished.

    After the last flow, `quiet_ps` without a packet ends it.
    """

    number: int
    scenario: Scenario
    limit_ps: int
    quiet_ps: int


class Run:
    """The event loop of one run: a heap of (due, host) with one valid entry a host, and sockets."""

    def __init__(self, order: Order, links: dict[int, socket.socket], channel: Channel) -> None:
        self._order = order
        self._start_ns = 0
        self._channel = channel
        demand = Demand.of(order.scenario)
        flows = demand.flows
        shares = host_shares(order.scenario, is_up=True)
        times = {share: link_times(order.scenario, share) for share in {FULL, *shares.values()}}
        self.nics = {
            host: Nic(links[host], endpoint, times[shares.get(host, FULL)], self.now_ps)
            for host, endpoint in endpoints(demand, links, order.number).items()
        }

        self.senders = {
            flow: host for flow, host in enumerate(flows.source.tolist()) if host in self.nics
        }
        self._tree = order.scenario.tree
        self._machines: dict[int, list[int]] = {}
        for host in self.nics:
            self._machines.setdefault(self._tree.machine(host), []).append(host)

        self._by_descriptor = {links[host].fileno(): host for host in self.nics}
        self._due = dict.fromkeys(self.nics, NEVER)
        self._heap: list[tuple[int, int]] = []
        self._halted_ps: int | None = None
        self._last_packet_ps = 0

    def now_ps(self) -> int:
        """Return the run's time."""
        return (time.monotonic_ns() - self._start_ns) * PS_PER_NS

    def loop(self, start_ns: int, sockets: select.epoll) -> None:
        """Run from an instant to all flows' end, the limit or a stop message, and on until quiet.

        `sockets` waits for the sockets of all hosts.
        """
        self._start_ns = start_ns
        for host in self.nics:
            self._requeue(host)

        # Due hosts go first: a flood of arrivals must not starve the links.
        while not self._is_over():
            self._act()
            self._wait(sockets)

    def take_in(self) -> None:
        """Take in packets that have arrived since the run's end."""
        for nic in self.nics.values():
            while nic.receive():
                pass

    def report(self) -> dict[str, Any]:
        """Return a record of every flow that begins at these hosts, and the counts of all hosts."""
        counts = [asdict(nic.final_counts()) for nic in self.nics.values()]
        return {
            "run": self._order.number,
            "finished": not self._unfinished(),
            "flows": [self._record(flow) for flow in self.senders],
            "counts": {
                field.name: sum(count[field.name] for count in counts) for field in fields(Counts)
            },
        }

    def _record(self, flow: int) -> list[Any]:
        endpoint = self.nics[self.senders[flow]].endpoint
        sender = endpoint.sender(flow)
        return [
            flow,
            endpoint.started_ps(flow),
            sender.first_ps,
            sender.done_ps,
            kept(SENDER_COUNTERS, sender),
        ]

    def _progress(self, flow: int) -> list[int]:
        endpoint = self.nics[self.senders[flow]].endpoint
        sender = endpoint.sender(flow)
        return [
            flow,
            sender.acked,
            endpoint.started_ps(flow),
            sender.done_ps,
            endpoint.tries(flow),
            sender.heard_ps,
        ]

    def _unfinished(self) -> bool:
        # Flows that end here count, too: while a sender computes, no packet may come for long.
        return any(
            self.nics[host].endpoint.sender(flow).done_ps == NEVER
            for flow, host in self.senders.items()
        ) or not all(nic.endpoint.has_received_all for nic in self.nics.values())

    def _is_over(self) -> bool:
        now = self.now_ps()
        if self._halted_ps is None and now > self._order.limit_ps:
            self._halt()

        # Packets under way arrive, so that the next run does not count them; packets that come for
        # ever are foreign.
        if self._halted_ps is not None and now > self._halted_ps + LONGEST_DRAIN_PS:
            return True

        # Flows that end here have senders elsewhere, which may still need our ACKs.
        is_quiet = now > self._last_packet_ps + self._order.quiet_ps
        return is_quiet and (self._halted_ps is not None or not self._unfinished())

    def _halt(self) -> None:
        """Start no packet any more."""
        if self._halted_ps is None:
            self._halted_ps = self._last_packet_ps = self.now_ps()
            for host, nic in self.nics.items():
                nic.halt()
                self._requeue(host)

    def _act(self) -> None:
        heap = self._heap
        due = self._due
        # Time is read once: a host that is due again and again does not keep the sockets waiting.
        now = self.now_ps()

        while heap and heap[0][0] <= now:
            due_ps, host = heappop(heap)
            if due[host] == due_ps:
                due[host] = NEVER
                self.nics[host].act()
                self._requeue_machine(host)

    def _requeue_machine(self, host: int) -> None:
        # A flow's end at one NIC of a machine may start flows at its other NICs.
        for nic in self._machines[self._tree.machine(host)]:
            self._requeue(nic)

    def _requeue(self, host: int) -> None:
        due = self.nics[host].due_ps()
        if due != self._due[host]:
            self._due[host] = due
            if due != NEVER:
                heappush(self._heap, (due, host))

    def _wait(self, sockets: select.epoll) -> None:
        """Sleep until the next deadline, a packet or a message."""
        next_ps = self._heap[0][0] - self.now_ps() if self._heap else LONGEST_SLEEP_PS
        seconds = max(0, min(next_ps, LONGEST_SLEEP_PS)) / PS_PER_SECOND

        # Two descriptors, of which the epoll stands for the sockets of all hosts. `select` sleeps,
        # because epoll_wait and poll count in milliseconds; it takes no descriptor above 1023, so
        # both are opened before any host's.
        waited: list[Any] = [sockets, self._channel]
        ready, _, _ = select.select(waited, [], [], 0 if self._channel.has_message else seconds)

        if sockets in ready:
            for descriptor, _ in sockets.poll(0):
                host = self._by_descriptor[descriptor]
                self.nics[host].receive()
                self._requeue_machine(host)

            self._last_packet_ps = self.now_ps()

        if self._channel in ready or self._channel.has_message:
            self._obey(self._channel.receive())

    def _obey(self, message: dict[str, Any] | None) -> None:
        match message:
            case {"failed": failed, "slow": slow}:
                self.converge(*_known(failed, slow))
            case {"progress": _}:
                self._channel.send({"progress": [self._progress(flow) for flow in self.senders]})
            case {"stop": _}:
                self._halt()
            case None:
                # The parent is gone: no report is needed.
                self._halt()
                self._halted_ps = self.now_ps() - 2 * LONGEST_DRAIN_PS

    def converge(self, failed: Links, slow: Slow) -> None:
        """Give hosts that route by themselves the failed and slow links for which routes hold."""
        for nic in self.nics.values():
            if nic.endpoint.routes:
                nic.endpoint.routes.converge(failed, slow)


def _known(failed: list[int], slow: list[list[float]]) -> tuple[Links, Slow]:
    """Return the failed and the slow links of a message."""
    return frozenset(failed), frozenset(SlowLink(int(link), *shares) for link, *shares in slow)


def serve(channel: Channel) -> None:
    """Answer messages until the channel ends."""
    links: dict[int, socket.socket] = {}
    run: Run | None = None
    last: Run | None = None
    with select.epoll() as sockets, ExitStack() as opened:
        while message := channel.receive():
            match message:
                case {"hosts": rows}:
                    links = {
                        host: opened.enter_context(open_link(pid, interface))
                        for host, pid, interface in rows
                    }
                    for link in links.values():
                        sockets.register(link, select.EPOLLIN)

                    # Only the sockets needed root. The rest is arithmetic on foreign packets.
                    give_up_root()
                    channel.send({"ready": len(links)})
                case {
                    "run": scenario,
                    "number": number,
                    "limit_ps": limit_ps,
                    "quiet_ps": quiet_ps,
                    **more,
                }:
                    # No packet waits now: the garbage of earlier runs goes (`main`).
                    run = last = None
                    gc.collect()
                    take(Scenario(**scenario), more.get("forms"))
                    with _readable(Scenario(**scenario), more.get("files", {})) as whole:
                        run = _armed(Order(number, whole, limit_ps, quiet_ps), links, channel)
                case {"failed": failed, "slow": slow} if run is not None:
                    run.converge(*_known(failed, slow))
                # All agents run on one machine and have the same clock.
                case {"start_ns": start_ns} if run is not None:
                    run.loop(start_ns, sockets)
                    channel.send(run.report())
                    last, run = run, None
                case {"again": _} if last is not None:
                    last.take_in()
                    channel.send(last.report())


@contextmanager
def _readable(scenario: Scenario, files: dict[str, str]) -> Iterator[Scenario]:
    """Yield the scenario with readable copies of its traffic's files, if it has any.

    The user's files, which the parent has read, may be in a folder that is closed to the agent.
    """
    with TemporaryDirectory() as folder:
        copies = {file: str(Path(folder) / str(number)) for number, file in enumerate(files)}
        for file, copy in copies.items():
            Path(copy).write_bytes(b64decode(files[file]))

        yield with_files(scenario, copies)


def _armed(order: Order, links: dict[int, socket.socket], channel: Channel) -> Run | None:
    try:
        run = Run(order, links, channel)
    except (FabricError, ValueError) as error:
        channel.send({"error": str(error)})
        return None

    channel.send({"armed": len(run.senders)})
    return run


def main() -> None:
    """Serve over standard input, which is a socket."""
    # The collector would stop all hosts of this agent at once, in search of cycles that a run
    # hardly makes.
    die_with_parent(signal.SIGKILL)
    wake_on_time()
    gc.disable()

    channel = Channel(socket.socket(fileno=sys.stdin.fileno()))
    try:
        serve(channel)
    except OSError:
        # A killed parent takes the namespaces of its hosts with it, and no process is left to take
        # an error.
        if not channel.is_hung_up:
            raise


if __name__ == "__main__":
    main()
