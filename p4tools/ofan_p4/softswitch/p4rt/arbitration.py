"""Which of the connected controllers is the primary, for every role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from google.rpc import status_pb2
from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import MasterArbitrationUpdate as Update

from ofan_p4.softswitch.base.errors import Code
from ofan_p4.softswitch.p4rt.status import StatusError

Send = Callable[[p4runtime_pb2.StreamMessageResponse], None]
# Far more controllers than anybody runs: these keep a broken client from filling memory.
MAX_STREAMS = 64
MAX_ROLES = 64


@dataclass(slots=True, eq=False)
class Client:
    """One open stream: its identity, after its first message."""

    send: Send
    role: str | None = None
    election_id: int | None = None


@dataclass(slots=True)
class RoleState:
    """The controllers of one role and the highest election id ever seen."""

    clients: list[Client] = field(default_factory=list)
    highest: int | None = None
    primary: Client | None = None


def number_of(election: p4runtime_pb2.Uint128) -> int:
    """Return an election id as one number."""
    return int(election.high) << 64 | int(election.low)


class Arbitration:
    """Primary-backup arbitration for one device."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, RoleState] = {}

    def update(self, client: Client, message: Update) -> None:
        """Handle a client's arbitration message; a StatusError ends its stream."""
        role = message.role.name
        election = number_of(message.election_id) if message.HasField("election_id") else None
        self._check(client, message, role, election)
        self._check_limits(client, role)
        # Only now: a refused client must not leave a role behind.
        state = self._roles.setdefault(role, RoleState())

        if client.role is None:
            client.role = role
            state.clients.append(client)

        client.election_id = election
        # 5: a client with an id at least as high as any ever seen becomes primary, so that a
        # primary that has gone cannot be followed by a client that it has already displaced.
        if election is not None and (state.highest is None or election >= state.highest):
            self._promote(state, client)
        # A primary that lowers its id, or gives it up, leaves the role without a primary.
        elif state.primary is client:
            state.primary = None
            self._notify(role, state, state.clients)
        else:
            self._notify(role, state, [client])

    def leave(self, client: Client) -> None:
        """Forget a client after its stream has ended."""
        if client.role is None:
            return

        state = self._roles[client.role]
        state.clients.remove(client)
        if state.primary is client:
            state.primary = None
            self._notify(client.role, state, state.clients)

    def check_primary(self, role: str, election: p4runtime_pb2.Uint128, has_election: bool) -> None:
        """Raise PERMISSION_DENIED unless this election id is that of the role's primary."""
        state = self._roles.get(role)
        if state is None:
            if role:
                raise StatusError(Code.NOT_FOUND, f"no controller has announced the role {role!r}")

            raise StatusError(Code.PERMISSION_DENIED, "no controller is primary")

        if (
            state.primary is None
            or not has_election
            or state.primary.election_id != number_of(election)
        ):
            raise StatusError(
                Code.PERMISSION_DENIED, "the election id is not that of the primary controller"
            )

    def is_primary(self, client: Client) -> bool:
        """Return whether the client is the primary of its role."""
        return client.role is not None and self._roles[client.role].primary is client

    def primaries(self) -> list[Client]:
        """Return the primary of every role."""
        return [state.primary for state in self._roles.values() if state.primary is not None]

    def _check(self, client: Client, message: Update, role: str, election: int | None) -> None:
        # The first message of a stream names the device; later messages cannot change it.
        if client.role is None and message.device_id != self._device_id:
            raise StatusError(
                Code.NOT_FOUND, f"this is device {self._device_id}, not {message.device_id}"
            )

        if message.device_id != self._device_id or client.role not in (None, role):
            raise StatusError(
                Code.FAILED_PRECONDITION, "device and role cannot change on an open stream"
            )

        if message.role.HasField("config"):
            raise StatusError(
                Code.INVALID_ARGUMENT,
                "role.config: no scheme is agreed upon, so a role has the full pipeline",
            )

        state = self._roles.get(role, RoleState())
        # 5: two controllers of a role cannot have the same id; one may repeat its own.
        if election is not None and any(
            c.election_id == election for c in state.clients if c is not client
        ):
            raise StatusError(
                Code.INVALID_ARGUMENT,
                f"election id {election} is already used by another controller",
            )

    def _check_limits(self, client: Client, role: str) -> None:
        state = self._roles.get(role)
        if state is None and len(self._roles) >= MAX_ROLES:
            raise StatusError(Code.RESOURCE_EXHAUSTED, f"there are {MAX_ROLES} roles already")

        if state is not None and client.role is None and len(state.clients) >= MAX_STREAMS:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED, f"{MAX_STREAMS} controllers have the role {role!r} already"
            )

    def _promote(self, state: RoleState, client: Client) -> None:
        state.primary = client
        state.highest = client.election_id
        backups = [backup for backup in state.clients if backup is not client]
        # The new primary hears of it last, when no client believes in the old primary any more.
        self._notify(client.role or "", state, [*backups, client])

    def _notify(self, role: str, state: RoleState, clients: list[Client]) -> None:
        for client in list(clients):
            client.send(self._message(role, state, client))

    def _message(
        self, role: str, state: RoleState, client: Client
    ) -> p4runtime_pb2.StreamMessageResponse:
        response = p4runtime_pb2.StreamMessageResponse()
        update = response.arbitration
        update.device_id = self._device_id

        if role:
            update.role.name = role

        # The id is that of the current or last primary, for every receiver.
        if state.highest is not None:
            update.election_id.high = state.highest >> 64
            update.election_id.low = state.highest & (1 << 64) - 1

        update.status.CopyFrom(_standing(state, client))
        return response


def _standing(state: RoleState, client: Client) -> status_pb2.Status:
    if state.primary is client:
        return status_pb2.Status(code=Code.OK)
    if state.primary is None:
        # 16.2: NOT_FOUND asks backups to stand for election, ALREADY_EXISTS does not.
        return status_pb2.Status(code=Code.NOT_FOUND, message="there is no primary controller")

    return status_pb2.Status(code=Code.ALREADY_EXISTS, message="another controller is primary")
