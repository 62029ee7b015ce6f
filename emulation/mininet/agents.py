"""The host agents of a run, as processes (`agents.agent` describes the messages)."""

import socket
import subprocess
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from emulation.errors import EmulationError, StartError
from emulation.mininet.children import ending
from emulation.mininet.loop import Loop
from fattree.errors import MatrixError
from fattree.experiment.model import Scenario
from fattree.files.text_file import read_bytes
from fattree.routes.failures import Links
from fattree.routes.slow_links import Slow
from fattree.shape.addressing import host_interface_name, host_name
from fattree.shape.topology import FatTree
from hostagent.agents.agent import Channel
from hostagent.agents.nic import Counts
from hostagent.isolation import clean_environment, python_command
from hostagent.own_packet import told
from sim.sweeps.store import plain


@dataclass(slots=True)
class Agent:
    """One agent process, its hosts, and its reports of the present run."""

    process: subprocess.Popen[bytes]
    channel: Channel
    hosts: str = ""
    report: dict[str, Any] | None = None
    progress: list[list[int]] = field(default_factory=list)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; raises StartError where the agent has ended."""
        try:
            self.channel.send(message)
        except OSError:
            raise self.ended() from None

    def receive(self) -> dict[str, Any] | None:
        """Wait for the next message; None where the agent has ended."""
        try:
            return self.channel.receive()
        except ConnectionError:
            return None

    def ended(self) -> StartError:
        """Return the error for an agent that has ended, with its status."""
        return StartError(
            f"the agent of {self.hosts} (process {self.process.pid}) {ending(self.process.wait())}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """A run as its hosts saw it.

    `flows` has [flow, start_ps, first_ps, done_ps, {counter: its sender's count}] of each,
    `counts` are those of all hosts' links.
    """

    is_finished: bool
    flows: list[list[Any]]
    counts: Counts


class Columns(IntEnum):
    """The columns of an agent's report of a flow's sender (`agents.agent`)."""

    FLOW = 0
    ACKED = 1
    START = 2
    DONE = 3
    TRIES = 4
    HEARD = 5


class Agents:
    """All agents of a network."""

    def __init__(self, agents: Sequence[Agent], loop: Loop) -> None:
        self._agents = agents
        self._loop = loop
        # Each callback has its own agent: a plain closure would see the loop's last agent.
        for agent in agents:
            loop.watch(agent.channel, lambda agent=agent: self._listen(agent))  # type: ignore[misc]

    @property
    def pids(self) -> list[int]:
        """Return the processes."""
        return [agent.process.pid for agent in self._agents]

    def arm(self, number: int, scenario: Scenario, limit_ps: int, quiet_ps: int) -> None:
        """Have every agent build its part of a run, the network's `number`th.

        Raises EmulationError with an agent's complaint.
        """
        # Agents run as the user `nobody`, who may not read the user's files.
        files = {file: b64encode(read_bytes(file, MatrixError)).decode() for file in scenario.files}
        forms = told(scenario)
        for agent in self._agents:
            agent.report = None
            agent.progress = []
            agent.send(
                {
                    "run": plain(scenario),
                    "number": number,
                    "limit_ps": limit_ps,
                    "quiet_ps": quiet_ps,
                    "files": files,
                    "forms": forms,
                }
            )

        # All have been asked before any is waited for: they build their parts side by side.
        for agent in self._agents:
            _expect(agent, "armed")

    def start(self, start_ns: int) -> None:
        """Start the armed run at an instant of CLOCK_MONOTONIC."""
        for agent in self._agents:
            agent.send({"start_ns": start_ns})

    def converge(self, failed: Links, slow: Slow) -> None:
        """Inform the hosts of the `failed` and `slow` links that routes now assume."""
        for agent in self._agents:
            agent.send({"failed": sorted(failed), "slow": sorted(slow)})

    def stop(self) -> None:
        """End the run early."""
        for agent in self._agents:
            if agent.report is None:
                agent.send({"stop": True})

    def progress(self) -> list[list[int]]:
        """Return the last reported [flow, acknowledged, start_ps, done_ps], and ask again."""
        return [row[: Columns.TRIES] for row in self.senders()]

    def senders(self) -> list[list[int]]:
        """Return the same with the packets sent and when an ACK last came, and ask again.

        The answers come to the loop. At the end of a run all sent packets without a known ACK are
        unacknowledged.
        """
        rows: list[list[int]] = []
        for agent in self._agents:
            if agent.report is None:
                agent.send({"progress": True})
                rows += agent.progress
            else:
                rows += [
                    [flow, counts["transmissions"], start_ps, done_ps, counts["transmissions"], 0]
                    for flow, start_ps, _, done_ps, counts in agent.report["flows"]
                ]

        return sorted(rows)

    def ask_again(self) -> None:
        """Have the agents report once more on the run that has ended, with later packets."""
        for agent in self._agents:
            agent.send({"again": True})

        for agent in self._agents:
            # Answers to earlier requests come first.
            while (message := agent.receive()) is not None and "run" not in message:
                agent.progress = message.get("progress", agent.progress)

            if message is None:
                raise agent.ended()

            agent.report = message

    def have_reported(self) -> bool:
        """Return whether the run has ended everywhere."""
        return all(agent.report for agent in self._agents)

    def report(self) -> Report:
        """Return the whole run."""
        reports = [agent.report or {} for agent in self._agents]
        counts = {
            name: sum(report["counts"][name] for report in reports)
            for name in Counts.__dataclass_fields__
        }

        flows = sorted(flow for report in reports for flow in report["flows"])
        return Report(all(report["finished"] for report in reports), flows, Counts(**counts))

    def _listen(self, agent: Agent) -> None:
        # As long as whole messages are in the channel's buffer: the descriptor is readable only for
        # bytes that have not been read, so that the loop would not call again for these.
        while True:
            message = agent.receive()
            if message is None:
                self._loop.unwatch(agent.channel)
                raise agent.ended()

            if "progress" in message:
                agent.progress = message["progress"]
            else:
                agent.report = message

            if not agent.channel.has_message:
                return


def _expect(agent: Agent, word: str) -> None:
    message = agent.receive()
    if message is None:
        raise agent.ended()
    if word not in message:
        raise EmulationError(message.get("error", f"a host agent said {message}"))


@contextmanager
def agents(
    tree: FatTree, host_processes: Sequence[int], loop: Loop, count: int = 1
) -> Iterator[Agents]:
    """Start `count` agents in this thread's network namespace, each for its share of the hosts."""
    with ExitStack() as stack:
        started = [stack.enter_context(_agent()) for _ in range(count)]
        for number, agent in enumerate(started):
            # Neighbours go to different agents, which share the traffic of a pod. The NICs of a
            # machine go to the same agent, as the end of a flow at a NIC lets others begin.
            hosts = [host for host in range(tree.hosts) if tree.machine(host) % count == number]
            agent.hosts = _named(tree, hosts)
            rows = [[host, host_processes[host], host_interface_name(tree, host)] for host in hosts]
            agent.send({"hosts": rows})

        for agent in started:
            _expect(agent, "ready")

        yield Agents(started, loop)


def _named(tree: FatTree, hosts: Sequence[int]) -> str:
    few = ", ".join(host_name(tree, host) for host in hosts[:3])
    return few if len(hosts) <= 3 else f"{few} and {len(hosts) - 3} more hosts"


@contextmanager
def _agent() -> Iterator[Agent]:
    ours, theirs = socket.socketpair()
    command = python_command("hostagent.agents.agent")

    # A session of its own: Ctrl-C is for us, who take everything down in order.
    process = subprocess.Popen(
        command, stdin=theirs.fileno(), start_new_session=True, env=clean_environment()
    )
    theirs.close()

    # The end of its socket ends the agent.
    try:
        yield Agent(process, Channel(ours))
    finally:
        ours.close()
        process.wait()
