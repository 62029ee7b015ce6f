"""Section 5 of the P4Runtime specification 1.4: controllers and election ids."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ofan_p4.softswitch.base.errors import Code
from tests.emulation.softswitch.conformance.peer import (
    DEVICE,
    Peer,
    code_of,
)

# isort: split
from p4.v1 import p4runtime_pb2 as p4

OK, TAKEN, NONE = int(Code.OK), int(Code.ALREADY_EXISTS), int(Code.NOT_FOUND)


class Clients:
    """Controllers of one role, by number, and the codes that each received since last asked."""

    def __init__(self) -> None:
        self.peer = Peer(has_pipeline=False)
        self.peer.stream.close()
        self.heard: dict[int, list[p4.StreamMessageResponse]] = {}
        self.streams: dict[int, Any] = {}

    def say(self, number: int, election: int | None) -> dict[int, list[int]]:
        """Announce an election id, and return the codes that each controller receives."""
        if number not in self.streams:
            self.heard[number] = []
            self.streams[number] = self.peer.service.open_stream(self.heard[number].append)

        Peer.announce(self.streams[number], election, role="r")
        return self.told()

    def leave(self, number: int) -> dict[int, list[int]]:
        """Close a stream, and return the codes that each of the others receives."""
        self.streams.pop(number).close()
        return self.told()

    def told(self) -> dict[int, list[int]]:
        """Return the codes that each controller received since last asked."""
        codes = {
            number: [message.arbitration.status.code for message in heard]
            for number, heard in self.heard.items()
            if heard
        }
        for heard in self.heard.values():
            heard.clear()

        return codes


def test_arbitration_from_the_first_controller_to_the_last() -> None:
    """5.3 and 5.4: who becomes primary, and the code that each controller receives."""
    clients = Clients()

    assert clients.say(1, 10) == {1: [OK]}, "the first becomes primary"
    assert clients.say(2, 5) == {2: [TAKEN]}, "a backup is told alone"
    assert clients.say(3, None) == {3: [TAKEN]}, "no election id is never primary"
    assert clients.say(2, 20) == {1: [TAKEN], 2: [OK], 3: [TAKEN]}, "a new primary: all are told"
    assert clients.say(2, 20) == {1: [TAKEN], 2: [OK], 3: [TAKEN]}, "the primary says it again"
    assert clients.say(2, 15) == {1: [NONE], 2: [NONE], 3: [NONE]}, (
        "the primary steps down: nobody reaches the highest id"
    )
    assert clients.say(1, 20) == {1: [OK], 2: [TAKEN], 3: [TAKEN]}, (
        "the highest id may be taken over"
    )
    assert clients.leave(1) == {2: [NONE], 3: [NONE]}, "the primary's stream is broken"
    assert clients.say(2, 19) == {2: [NONE]}, "below the highest id ever seen"


def test_notifications_carry_the_highest_election_id() -> None:
    """5.4: election_id is the highest that the server has seen, unset while there has not been any
    primary.
    """
    clients = Clients()
    streams = [
        clients.peer.service.open_stream(heard.append)
        for heard in (clients.heard.setdefault(i, []) for i in (1, 2))
    ]
    Peer.announce(streams[0], None, role="r")

    assert not clients.heard[1][-1].arbitration.HasField("election_id")

    Peer.announce(streams[1], 9, role="r")
    Peer.announce(streams[1], 4, role="r")

    assert clients.heard[1][-1].arbitration.election_id.low == 9
    assert (
        clients.heard[1][-1].arbitration.device_id,
        clients.heard[1][-1].arbitration.role.name,
    ) == (DEVICE, "r")


class Refusal(NamedTuple):
    """An arbitration message that ends the stream."""

    words: str
    is_first: bool
    fields: dict[str, Any]
    code: str


REFUSALS = [
    Refusal("an unknown device", True, {"device": 9}, "NOT_FOUND"),
    Refusal("an election id in use", True, {"election": 1}, "INVALID_ARGUMENT"),
    Refusal("another device on a live stream", False, {"device": 9}, "FAILED_PRECONDITION"),
    Refusal("another role on a live stream", False, {"role": "other"}, "FAILED_PRECONDITION"),
    Refusal("an election id in use, on a live stream", False, {"election": 1}, "INVALID_ARGUMENT"),
]


@pytest.mark.parametrize("rule", REFUSALS, ids=lambda rule: rule.words)
def test_arbitration_refuses(rule: Refusal) -> None:
    """5.3: the server shall terminate the stream."""
    peer = Peer(has_pipeline=False)
    stream = peer.service.open_stream(lambda _message: None)
    if not rule.is_first:
        Peer.announce(stream, 7)

    assert code_of(lambda: Peer.announce(stream, **{"election": 8, **rule.fields})) == rule.code


def test_role_config_of_no_agreed_scheme_is_refused() -> None:
    """5.3: if role.config does not match the scheme previously agreed upon, INVALID_ARGUMENT."""
    message = p4.StreamMessageRequest()
    message.arbitration.device_id = DEVICE
    message.arbitration.role.name = "r"
    message.arbitration.role.config.Pack(p4.Uint128(low=1))
    stream = Peer(has_pipeline=False).service.open_stream(lambda _message: None)

    assert code_of(lambda: stream.receive(message)) == "INVALID_ARGUMENT"


def test_too_many_streams_are_refused() -> None:
    """5.3: RESOURCE_EXHAUSTED beyond the supported number of streams."""
    peer = Peer(has_pipeline=False)
    codes = [
        code_of(lambda: Peer.announce(peer.service.open_stream(lambda _message: None), None))
        for _ in range(70)
    ]

    assert (codes[:63], set(codes[63:])) == (["OK"] * 63, {"RESOURCE_EXHAUSTED"})
