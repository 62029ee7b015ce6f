"""Sections 12 to 17 of the P4Runtime specification 1.4: calls, and the codes that they end with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ofan_p4.softswitch.base.errors import Code
from ofan_p4.softswitch.p4runtime import StatusError
from tests.emulation.softswitch.conformance.peer import (
    DEVICE,
    Peer,
    Set,
    action,
    code_of,
    entity,
    entry,
    exact,
    lpm,
)

# isort: split
from p4.v1 import p4runtime_pb2 as p4

Get = p4.GetForwardingPipelineConfigRequest
KNOWN = entry("exact_table", exact(5), action("forward", 3))


class Call(NamedTuple):
    """One rule about a call: the call, and the code that it ends with."""

    section: str
    words: str
    call: Callable[[Peer], Any]
    code: str


def get(**fields: Any) -> Callable[[Peer], Any]:
    """A call that asks for the pipeline."""
    return lambda peer: peer.service.get_pipeline(Get(**fields))


def read(**fields: Any) -> Callable[[Peer], Any]:
    """A read, of nothing unless `fields` say so."""
    return lambda peer: peer.service.read(p4.ReadRequest(**{"device_id": DEVICE, **fields}))


def write(**fields: Any) -> Callable[[Peer], Any]:
    """A valid write, but for `fields`."""
    return lambda peer: peer.write(("INSERT", KNOWN), **fields)


def configure(kind: int, has_config: bool = True, **fields: Any) -> Callable[[Peer], Any]:
    """A call that sets the pipeline."""
    return lambda peer: peer.set_pipeline(kind, has_config, **fields)


def without_election(peer: Peer) -> None:
    """Write without an election id."""
    peer.service.write(p4.WriteRequest(device_id=DEVICE))


def with_broken_config(peer: Peer) -> None:
    """Verify a P4Info that names a table which the program does not have."""
    peer.info.tables[0].preamble.name = "I.other"
    peer.set_pipeline(Set.VERIFY)


def of_another_role(peer: Peer) -> None:
    """Write for a role with a primary that has another election id."""
    Peer.announce(peer.service.open_stream(lambda _message: None), 5, role="sdn")
    peer.write(("INSERT", KNOWN), role="sdn")


CALLS = [
    Call("12 Write", "an unknown device", write(device_id=9), "NOT_FOUND"),
    Call("12 Write", "an unknown role", write(role="nobody"), "NOT_FOUND"),
    Call("12 Write", "not the primary's election id", without_election, "PERMISSION_DENIED"),
    Call(
        "12 Write",
        "the primary of the role by its own election id",
        of_another_role,
        "PERMISSION_DENIED",
    ),
    Call(
        "12 Write",
        "CONTINUE_ON_ERROR is required",
        write(atomicity=p4.WriteRequest.CONTINUE_ON_ERROR),
        "OK",
    ),
    Call(
        "12 Write",
        "ROLLBACK_ON_ERROR is supported",
        write(atomicity=p4.WriteRequest.ROLLBACK_ON_ERROR),
        "OK",
    ),
    Call(
        "12 Write",
        "DATAPLANE_ATOMIC is supported",
        write(atomicity=p4.WriteRequest.DATAPLANE_ATOMIC),
        "OK",
    ),
    Call("13 Read", "an unknown device", read(device_id=9), "NOT_FOUND"),
    Call(
        "13 Read",
        "requires neither election id nor stream",
        read(entities=[p4.Entity(table_entry=p4.TableEntry())]),
        "OK",
    ),
    Call("13 Read", "an empty entity is no wildcard", read(entities=[p4.Entity()]), "UNKNOWN"),
    Call("14 Set", "an unknown device", configure(Set.VERIFY, device_id=9), "NOT_FOUND"),
    Call("14 Set", "an unknown role", configure(Set.VERIFY, role="nobody"), "NOT_FOUND"),
    Call("14 Set", "no action", configure(Set.UNSPECIFIED), "INVALID_ARGUMENT"),
    Call("14 Set", "VERIFY", configure(Set.VERIFY), "OK"),
    Call("14 Set", "VERIFY without config", configure(Set.VERIFY, False), "INVALID_ARGUMENT"),
    Call("14 Set", "VERIFY of what cannot be realised", with_broken_config, "INVALID_ARGUMENT"),
    Call("14 Set", "VERIFY_AND_SAVE", configure(Set.VERIFY_AND_SAVE), "OK"),
    Call(
        "14 Set",
        "VERIFY_AND_SAVE without config",
        configure(Set.VERIFY_AND_SAVE, False),
        "INVALID_ARGUMENT",
    ),
    Call(
        "14 Set",
        "VERIFY_AND_COMMIT without config",
        configure(Set.VERIFY_AND_COMMIT, False),
        "INVALID_ARGUMENT",
    ),
    Call("14 Set", "COMMIT without a saved config", configure(Set.COMMIT, False), "NOT_FOUND"),
    Call("14 Set", "COMMIT with a config", configure(Set.COMMIT), "INVALID_ARGUMENT"),
    Call("14 Set", "RECONCILE_AND_COMMIT", configure(Set.RECONCILE_AND_COMMIT), "OK"),
    Call(
        "14 Set",
        "RECONCILE_AND_COMMIT without config",
        configure(Set.RECONCILE_AND_COMMIT, False),
        "INVALID_ARGUMENT",
    ),
    Call("15 Get", "an unknown device", get(device_id=9), "NOT_FOUND"),
    Call(
        "15 Get",
        "a response type that there is not",
        get(device_id=DEVICE, response_type=9),
        "INVALID_ARGUMENT",
    ),
    Call(
        "17 Capabilities",
        "without a device",
        lambda peer: peer.service.capabilities(p4.CapabilitiesRequest()),
        "OK",
    ),
    Call(
        "17 Capabilities",
        "an unknown device",
        lambda peer: peer.service.capabilities(p4.CapabilitiesRequest(device_id=9)),
        "NOT_FOUND",
    ),
]


@pytest.mark.parametrize("rule", CALLS, ids=lambda rule: f"{rule.section}: {rule.words}")
def test_call(rule: Call) -> None:
    peer = Peer()
    assert code_of(lambda: rule.call(peer)) == rule.code


@pytest.mark.parametrize("call", [write(), read()], ids=["Write", "Read"])
def test_before_a_config_is_set_reads_and_writes_fail(call: Callable[[Peer], Any]) -> None:
    """12, 13: before a ForwardingPipelineConfig has been set, FAILED_PRECONDITION."""
    peer = Peer(has_pipeline=False)
    assert code_of(lambda: call(peer)) == "FAILED_PRECONDITION"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Get.ALL, {"p4info", "p4_device_config", "cookie"}),
        (Get.COOKIE_ONLY, {"cookie"}),
        (Get.P4INFO_AND_COOKIE, {"p4info", "cookie"}),
        (Get.DEVICE_CONFIG_AND_COOKIE, {"p4_device_config", "cookie"}),
    ],
)
def test_get_returns_the_fields_of_its_type(kind: int, fields: set[str]) -> None:
    """15: response_type selects the fields to populate; the cookie is as it was set."""
    config = Peer().service.get_pipeline(Get(device_id=DEVICE, response_type=kind)).config

    assert {field.name for field, _ in config.ListFields()} == fields
    assert config.cookie.cookie == 42


def test_get_without_a_config_leaves_it_unset() -> None:
    """15: the top-level config is unset where it is not known."""
    assert (
        not Peer(has_pipeline=False).service.get_pipeline(Get(device_id=DEVICE)).HasField("config")
    )


def test_every_update_is_tried_and_has_its_error() -> None:
    """12.3: one p4.Error per update, in order; OK ones carry the code only.

    The status is UNKNOWN.
    """
    peer = Peer()

    with pytest.raises(StatusError) as caught:
        peer.write(
            ("INSERT", KNOWN),
            ("INSERT", KNOWN),
            ("DELETE", entry("lpm_table", lpm(1, 32))),
            ("MODIFY", KNOWN),
        )

    codes = [detail.canonical_code for detail in caught.value.details]

    assert (caught.value.code, codes) == (
        Code.UNKNOWN,
        [Code.OK, Code.ALREADY_EXISTS, Code.NOT_FOUND, Code.OK],
    )
    assert caught.value.details[0] == p4.Error()
    assert all(detail.message and detail.space for detail in caught.value.details[1:3])


def test_valid_requests_of_a_read_are_answered() -> None:
    """13.3: the entities of the valid requests, then a status with one p4.Error per request."""
    peer = Peer()
    peer.write(("INSERT", KNOWN))
    requested = [
        entity(entry("exact_table")),
        entity("table_entry { table_id: 7 }"),
        entity("counter_entry { counter_id: $counted }"),
    ]
    responses, failure = peer.service.read_all(p4.ReadRequest(device_id=DEVICE, entities=requested))

    assert [
        answered.WhichOneof("entity") for response in responses for answered in response.entities
    ] == ["table_entry"] + ["counter_entry"] * 4
    assert failure is not None
    assert [detail.canonical_code for detail in failure.details] == [
        Code.OK,
        Code.NOT_FOUND,
        Code.OK,
    ]
