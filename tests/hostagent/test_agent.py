"""An agent without a network: messages in order, and a run's time and end."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from select import epoll

import pytest

from fattree.experiment.model import Fabric, Scenario
from fattree.units import PS_PER_SECOND
from hostagent.agents.agent import Channel, Order, Run

Pair = tuple[socket.socket, Channel]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Return a socket and the channel at its other end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, Channel(theirs)


def test_messages_that_come_together_are_received_one_by_one_in_order(pair: Pair) -> None:
    ours, channel = pair
    ours.sendall(b'{"first": 1}\n{"second": 2}\n{"thi')
    assert not channel.has_message
    assert channel.receive() == {"first": 1}
    assert channel.has_message
    assert channel.receive() == {"second": 2}
    assert not channel.has_message

    ours.sendall(b'rd": 3}\n')
    assert channel.receive() == {"third": 3}
    ours.close()
    assert channel.receive() is None


def test_a_run_without_flows_ends_after_its_quiet_time(pair: Pair) -> None:
    _, channel = pair
    quiet_ps = PS_PER_SECOND // 5
    run = Run(Order(0, Scenario(fabric=Fabric(k=2)), 10 * PS_PER_SECOND, quiet_ps), {}, channel)
    with epoll() as sockets:
        run.loop(time.monotonic_ns(), sockets)

    assert quiet_ps < run.now_ps() < 5 * PS_PER_SECOND
    report = run.report()
    assert report["finished"] and report["flows"] == [] and report["counts"]["data_sent"] == 0


def test_a_run_ends_at_its_limit_or_when_it_is_told(pair: Pair) -> None:
    ours, channel = pair
    quiet_ps = PS_PER_SECOND // 5
    order = Order(0, Scenario(fabric=Fabric(k=2)), PS_PER_SECOND // 10, quiet_ps)
    limited = Run(order, {}, channel)
    with epoll() as sockets:
        limited.loop(time.monotonic_ns(), sockets)
        assert order.limit_ps + quiet_ps < limited.now_ps() < PS_PER_SECOND

        # It would end by itself only after its quiet time, which begins with the order to stop.
        patient = Run(Order(1, order.scenario, 9 * PS_PER_SECOND, quiet_ps), {}, channel)
        ours.sendall(b'{"progress": true}\n{"stop": true}\n')
        patient.loop(time.monotonic_ns(), sockets)
        assert patient.now_ps() < PS_PER_SECOND

    assert ours.recv(100) == b'{"progress": []}\n'


@pytest.mark.parametrize("is_killed", [True, False])
def test_an_agent_whose_parent_was_killed_has_no_last_words(is_killed: bool) -> None:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "hostagent.agents.agent"]
    # No process has this number: as if its namespace had gone with the parent.
    Channel(ours).send({"hosts": [[0, 2**22 + 1, "eth0"]]})
    if is_killed:
        ours.close()

    with ours, theirs:
        done = subprocess.run(
            command,
            stdin=theirs.fileno(),
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )

    # While somebody listens it is an error.
    assert (done.returncode == 0) == is_killed
    assert ("FileNotFoundError" in done.stderr) == (not is_killed)
