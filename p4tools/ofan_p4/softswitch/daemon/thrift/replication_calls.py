"""The runtime API's calls for multicast groups and clone sessions."""

from __future__ import annotations

import json

from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.messages import (
    CallError,
    MirroringError,
    MulticastError,
    Refusal,
)
from ofan_p4.softswitch.daemon.thrift.state import Runtime
from ofan_p4.softswitch.daemon.thrift.wire import I32
from ofan_p4.softswitch.state.replication import CloneSession, Replica, Replication

MOST_GROUPS = 1 << 16
MOST_SESSIONS = 1 << 15
MOST_RIDS = 1 << 16
MOST_PORTS = 512


class Nodes:
    """Nodes, and the groups that have them; forgotten with the program, like their replicas.

    Sessions that send to a group follow its nodes.
    """

    def __init__(self) -> None:
        self.nodes: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.groups: dict[int, list[int]] = {}
        self.sessions: dict[int, m.MirroringSession] = {}

    def replicas(self, group: int) -> tuple[Replica, ...]:
        """Return the copies that a group makes, node by node."""
        return tuple(
            Replica(port, rid, is_bytes=False)
            for node in self.groups.get(group, ())
            for rid, ports in [self.nodes[node]]
            for port in ports
        )

    def publish(self, replication: Replication) -> None:
        """Write the nodes' replicas to the switch, except for groups that P4Runtime has deleted."""
        for group in self.groups.keys() & replication.groups.keys():
            replication.groups[group] = self.replicas(group)

        for number in self.sessions.keys() & replication.sessions.keys():
            session = self.sessions[number]
            unicast = () if session.port is None else (Replica(session.port, is_bytes=False),)
            copies = () if session.mgid is None else replication.groups.get(session.mgid, ())
            replication.sessions[number] = CloneSession((*unicast, *copies))


class Engine:
    """The nodes of the replication engine that the switch has at the moment."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._nodes = Nodes()
        self._of: Replication | None = None

    @property
    def replication(self) -> Replication:
        """The switch's own groups and sessions."""
        return self._runtime.switch.replication

    @property
    def nodes(self) -> Nodes:
        """The nodes; none where the program is another than at the last call."""
        if self._of is not self.replication:
            self._nodes, self._of = Nodes(), self.replication

        return self._nodes

    def publish(self) -> None:
        """Write the nodes' replicas to the switch."""
        self.nodes.publish(self.replication)


class MulticastCalls(m.Part):
    """Multicast groups; a group's handle is its number."""

    codes = m.MulticastError

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def bm_mc_mgrp_create(self, mgrp: I32) -> I32:
        # One of P4Runtime's is taken as well.
        if not 0 < mgrp < MOST_GROUPS or mgrp in self._engine.replication.groups:
            raise Refusal(MulticastError.INVALID_MGID)

        self._engine.nodes.groups[mgrp] = []
        self._engine.replication.groups[mgrp] = ()
        return mgrp

    def bm_mc_mgrp_destroy(self, mgrp_handle: I32) -> None:
        self._group(mgrp_handle)
        del self._engine.nodes.groups[mgrp_handle]
        self._engine.replication.groups.pop(mgrp_handle, None)
        self._engine.publish()

    def bm_mc_node_create(self, rid: I32, port_map: str, lag_map: str | None) -> I32:
        if not 0 <= rid < MOST_RIDS:
            raise Refusal(MulticastError.ERROR)

        nodes = self._engine.nodes.nodes
        handle = next(number for number in range(len(nodes) + 1) if number not in nodes)
        nodes[handle] = (rid, _ports(port_map, lag_map))
        return handle

    def bm_mc_node_associate(self, mgrp_handle: I32, l1_handle: I32) -> None:
        group = self._group(mgrp_handle)
        self._check_node(l1_handle)
        # BMv2's nodes are in one group at a time.
        if any(l1_handle in members for members in self._engine.nodes.groups.values()):
            raise Refusal(MulticastError.ERROR)

        group.append(l1_handle)
        self._engine.publish()

    def bm_mc_node_dissociate(self, mgrp_handle: I32, l1_handle: I32) -> None:
        group = self._group(mgrp_handle)
        self._check_node(l1_handle)
        if l1_handle not in group:
            raise Refusal(MulticastError.ERROR)

        group.remove(l1_handle)
        self._engine.publish()

    def bm_mc_node_destroy(self, l1_handle: I32) -> None:
        self._check_node(l1_handle)
        for group in self._engine.nodes.groups.values():
            if l1_handle in group:
                group.remove(l1_handle)

        del self._engine.nodes.nodes[l1_handle]
        self._engine.publish()

    def bm_mc_node_update(self, l1_handle: I32, port_map: str, lag_map: str | None) -> None:
        self._check_node(l1_handle)
        rid, _ = self._engine.nodes.nodes[l1_handle]
        self._engine.nodes.nodes[l1_handle] = (rid, _ports(port_map, lag_map))
        self._engine.publish()

    def bm_mc_get_entries(self) -> str:
        nodes = self._engine.nodes
        # In BMv2 ports are objects of their own; here each node has its own.
        return json.dumps(
            {
                "mgrps": [
                    {"id": group, "l1_handles": members} for group, members in nodes.groups.items()
                ],
                "l1_handles": [
                    {"handle": handle, "rid": rid, "l2_handle": handle}
                    for handle, (rid, _) in nodes.nodes.items()
                ],
                "l2_handles": [
                    {"handle": handle, "ports": list(ports), "lags": []}
                    for handle, (_, ports) in nodes.nodes.items()
                ],
                "lags": [],
            }
        )

    def _group(self, handle: int) -> list[int]:
        groups = self._engine.nodes.groups
        if handle not in groups:
            raise Refusal(MulticastError.INVALID_MGRP_HANDLE)

        return groups[handle]

    def _check_node(self, handle: int) -> None:
        if handle not in self._engine.nodes.nodes:
            raise Refusal(MulticastError.INVALID_L1_HANDLE)


class MirroringCalls(m.Part):
    """Clone sessions."""

    codes = m.MirroringError
    has_context = False

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def mirroring_session_add(self, mirror_id: I32, config: m.MirroringSession) -> None:
        if not 0 <= mirror_id < MOST_SESSIONS:
            raise CallError(f"a mirroring session has a number below {MOST_SESSIONS}")
        if config.port is None and config.mgid is None:
            raise CallError("a mirroring session needs a port or a multicast group")

        self._engine.nodes.sessions[mirror_id] = config
        self._engine.replication.sessions[mirror_id] = CloneSession(())
        self._engine.publish()

    def mirroring_session_delete(self, mirror_id: I32) -> None:
        self.mirroring_session_get(mirror_id)
        self._engine.nodes.sessions.pop(mirror_id, None)
        del self._engine.replication.sessions[mirror_id]

    def mirroring_session_get(self, mirror_id: I32) -> m.MirroringSession:
        session = self._engine.replication.sessions.get(mirror_id)
        if session is None:
            raise Refusal(MirroringError.SESSION_NOT_FOUND)

        # Sessions of P4Runtime's have ports only.
        made_here = self._engine.nodes.sessions.get(mirror_id)
        ports = [replica.port for replica in session.replicas]
        return made_here or m.MirroringSession(port=ports[0] if ports else None)


def _ports(port_map: str, lag_map: str | None) -> tuple[int, ...]:
    """Return the ports of a string of bits, port 0 last."""
    if lag_map and "1" in lag_map:
        raise CallError("this switch has no link aggregation groups")
    if len(port_map) > MOST_PORTS or {*port_map} - {"0", "1"}:
        raise Refusal(MulticastError.ERROR)

    return tuple(port for port, bit in enumerate(reversed(port_map)) if bit == "1")
