"""Multicast groups and clone sessions, by the commands of the switch's own command line."""

from __future__ import annotations

from collections.abc import Callable

from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.state.replication import CloneSession, Replica
from ofan_p4.stf.script import ScriptError, numbers


class Multicast:
    """Nodes and groups by the numbers of a script, written through to the replication engine."""

    def __init__(self, switch: Switch) -> None:
        # Not its replication engine, which is a new one after every loading of a program.
        self._switch = switch
        self._nodes: list[tuple[Replica, ...]] = []
        self._members: dict[int, list[int]] = {}
        self._group_sessions: dict[int, int] = {}

    def mirroring_add(self, line: int, arguments: tuple[str, ...]) -> None:
        """`SESSION PORT`: clone to a port."""
        session, port = numbers(line, arguments[:2])
        self._group_sessions.pop(session, None)
        self._switch.replication.sessions[session] = CloneSession((Replica(port),))

    def mirroring_add_mc(self, line: int, arguments: tuple[str, ...]) -> None:
        """`SESSION GROUP`: clone to a multicast group."""
        session, group = numbers(line, arguments[:2])
        self._group_sessions[session] = group
        self._refresh()

    def mirroring_delete(self, line: int, arguments: tuple[str, ...]) -> None:
        """`SESSION`."""
        session = numbers(line, arguments[:1])[0]
        self._group_sessions.pop(session, None)
        self._switch.replication.sessions.pop(session, None)

    def group_create(self, line: int, arguments: tuple[str, ...]) -> None:
        """`GROUP`, without nodes yet."""
        self._members[numbers(line, arguments[:1])[0]] = []
        self._refresh()

    def node_create(self, line: int, arguments: tuple[str, ...]) -> None:
        """`RID PORT...`; nodes are numbered in the order of their creation."""
        self._nodes.append(_replicas(line, arguments))

    def node_update(self, line: int, arguments: tuple[str, ...]) -> None:
        """`NODE PORT...`: replace the ports; the replication id stays."""
        node = self._node(line, arguments[0])
        # All replicas of a node share the id.
        rid = self._nodes[node][0].instance
        self._nodes[node] = _replicas(line, (str(rid), *arguments[1:]))
        self._refresh()

    def node_associate(self, line: int, arguments: tuple[str, ...]) -> None:
        """`GROUP NODE`."""
        group = numbers(line, arguments[:1])[0]
        if group not in self._members:
            raise ScriptError(line, f"no multicast group {group}")

        self._members[group].append(self._node(line, arguments[1]))
        self._refresh()

    def _node(self, line: int, text: str) -> int:
        node = numbers(line, [text])[0]
        if not 0 <= node < len(self._nodes):
            raise ScriptError(line, f"no multicast node {node}")

        return node

    def _refresh(self) -> None:
        """Write groups, and sessions that clone to groups, as the replication engine keeps them."""
        replication = self._switch.replication
        for group, nodes in self._members.items():
            # The switch that the format was made for puts the latest node first.
            replication.groups[group] = tuple(
                replica for node in reversed(nodes) for replica in self._nodes[node]
            )

        # Sessions last, since they clone to the groups as they are now.
        for session, group in self._group_sessions.items():
            replication.sessions[session] = CloneSession(replication.groups.get(group, ()))


def _replicas(line: int, arguments: tuple[str, ...]) -> tuple[Replica, ...]:
    rid, *ports = numbers(line, arguments)
    return tuple(Replica(port, rid) for port in sorted(ports))


HANDLERS: dict[str, Callable[[Multicast, int, tuple[str, ...]], None]] = {
    "mirroring_add": Multicast.mirroring_add,
    "mirroring_add_mc": Multicast.mirroring_add_mc,
    "mirroring_delete": Multicast.mirroring_delete,
    "mc_mgrp_create": Multicast.group_create,
    "mc_node_create": Multicast.node_create,
    "mc_node_update": Multicast.node_update,
    "mc_node_associate": Multicast.node_associate,
}
