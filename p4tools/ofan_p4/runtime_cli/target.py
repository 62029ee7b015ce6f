"""Commands for the switch itself: multicast, mirroring, queues, ports."""

from __future__ import annotations

import json
from pathlib import Path

from ofan_p4.runtime_cli import texts, values
from ofan_p4.runtime_cli.names import InputError
from ofan_p4.runtime_cli.session import Lines, Session, command
from ofan_p4.softswitch.daemon.thrift import messages as m


@command("mc_mgrp_create <group>")
def mc_mgrp_create(session: Session, tokens: list[str]) -> Lines:
    """Make a multicast group."""
    group = values.i32(tokens[0], "a group")
    yield f"Creating multicast group {group}"
    session.multicast("bm_mc_mgrp_create", mgrp=group)


@command("mc_mgrp_destroy <group>")
def mc_mgrp_destroy(session: Session, tokens: list[str]) -> Lines:
    """Remove a multicast group."""
    group = values.i32(tokens[0], "a group")
    yield f"Destroying multicast group {group}"
    session.multicast("bm_mc_mgrp_destroy", mgrp_handle=group)


@command("mc_node_create <rid> ...")
def mc_node_create(session: Session, tokens: list[str]) -> Lines:
    """Make a node: a replication id and ports."""
    rid, ports = values.i32(tokens[0], "a replication id"), _ports(tokens[1:])
    yield f"Creating node with rid {rid} and with port map {ports}"
    handle = session.multicast("bm_mc_node_create", rid=rid, port_map=ports, lag_map="")
    yield f"node was created with handle {handle}"


@command("mc_node_update <node> ...")
def mc_node_update(session: Session, tokens: list[str]) -> Lines:
    """Give a node other ports."""
    node, ports = values.i32(tokens[0], "a node"), _ports(tokens[1:])
    yield f"Updating node {node} with port map {ports}"
    session.multicast("bm_mc_node_update", l1_handle=node, port_map=ports, lag_map="")


@command("mc_node_associate <group> <node>")
def mc_node_associate(session: Session, tokens: list[str]) -> Lines:
    """Put a node into a group."""
    group, node = values.i32(tokens[0], "a group"), values.i32(tokens[1], "a node")
    yield f"Associating node {node} to multicast group {group}"
    session.multicast("bm_mc_node_associate", mgrp_handle=group, l1_handle=node)


@command("mc_node_dissociate <group> <node>")
def mc_node_dissociate(session: Session, tokens: list[str]) -> Lines:
    """Take a node out of a group."""
    group, node = values.i32(tokens[0], "a group"), values.i32(tokens[1], "a node")
    yield f"Dissociating node {node} from multicast group {group}"
    session.multicast("bm_mc_node_dissociate", mgrp_handle=group, l1_handle=node)


@command("mc_node_destroy <node>")
def mc_node_destroy(session: Session, tokens: list[str]) -> Lines:
    """Remove a node."""
    node = values.i32(tokens[0], "a node")
    yield f"Destroying node {node}"
    session.multicast("bm_mc_node_destroy", l1_handle=node)


@command("mc_dump")
def mc_dump(session: Session, _tokens: list[str]) -> Lines:
    """Print all multicast groups."""
    entries = json.loads(session.multicast("bm_mc_get_entries"))
    ports = {item["handle"]: item["ports"] for item in entries["l2_handles"]}
    nodes = {item["handle"]: item for item in entries["l1_handles"]}
    yield texts.RULE
    yield "MC ENTRIES"
    for group in entries["mgrps"]:
        yield texts.STARS
        yield f"mgrp({group['id']})"
        for handle in group["l1_handles"]:
            node = nodes[handle]
            listed = ", ".join(map(str, ports[node["l2_handle"]]))
            yield f"  -> (L1h={handle}, rid={node['rid']}) -> (ports=[{listed}], lags=[])"

    yield texts.RULE


def _ports(tokens: list[str]) -> str:
    if "|" in tokens:
        raise InputError("link aggregation groups are not supported")

    return values.port_map(tokens)


@command("mirroring_add <session> <port>")
def mirroring_add(session: Session, tokens: list[str]) -> None:
    """Send the clones of a session out of a port."""
    _mirror(session, tokens, m.MirroringSession(port=values.i32(tokens[1], "a port")))


@command("mirroring_add_mc <session> <group>")
def mirroring_add_mc(session: Session, tokens: list[str]) -> None:
    """Send the clones of a session to a multicast group."""
    _mirror(session, tokens, m.MirroringSession(mgid=values.i32(tokens[1], "a group")))


def _mirror(session: Session, tokens: list[str], config: m.MirroringSession) -> None:
    number = values.i32(tokens[0], "a mirroring session")
    session.target("mirroring_session_add", mirror_id=number, config=config)


@command("mirroring_delete <session>")
def mirroring_delete(session: Session, tokens: list[str]) -> None:
    """Remove a mirroring session."""
    number = values.i32(tokens[0], "a mirroring session")
    session.target("mirroring_session_delete", mirror_id=number)


@command("mirroring_get <session>")
def mirroring_get(session: Session, tokens: list[str]) -> Lines:
    """Print a mirroring session."""
    number = values.i32(tokens[0], "a mirroring session")
    config = session.target("mirroring_session_get", mirror_id=number)
    yield f"MirroringSessionConfig(port={config.port}, mgid={config.mgid})"


@command("set_queue_rate <packets-per-second> [port] [priority]")
def set_queue_rate(session: Session, tokens: list[str]) -> None:
    """Set the rate of all queues, of a port's queues, or of a single queue."""
    _set_queues(session, tokens, "rate", "rate_pps")


@command("set_queue_depth <packets> [port] [priority]")
def set_queue_depth(session: Session, tokens: list[str]) -> None:
    """Set the depth of all queues, of a port's queues, or of a single queue."""
    _set_queues(session, tokens, "depth", "depth_pkts")


def _set_queues(session: Session, tokens: list[str], quantity: str, name: str) -> None:
    fields = {name: values.i32(tokens[0], f"a {quantity}")}
    names = ("port_num", "priority")
    fields.update(
        {key: values.i32(word, key) for key, word in zip(names, tokens[1:], strict=False)}
    )
    methods = (
        f"all_egress_queue_{quantity}s",
        f"egress_queue_{quantity}",
        f"egress_priority_queue_{quantity}",
    )
    session.target(f"set_{methods[len(tokens) - 1]}", **fields)


@command("get_time_elapsed")
def get_time_elapsed(session: Session, _tokens: list[str]) -> Lines:
    """Print the microseconds since the switch started."""
    yield str(session.target("get_time_elapsed_us"))


@command("get_time_since_epoch")
def get_time_since_epoch(session: Session, _tokens: list[str]) -> Lines:
    """Print the microseconds since 1970."""
    yield str(session.target("get_time_since_epoch_us"))


@command("show_ports")
def show_ports(session: Session, _tokens: list[str]) -> Lines:
    """List the ports."""
    yield from texts.port_lines(session.standard("bm_dev_mgr_show_ports"))


@command("switch_info")
def switch_info(session: Session, _tokens: list[str]) -> Lines:
    """Print which switch this is."""
    info = session.standard("bm_mgmt_get_info")
    yield f"{'device_id':25}: {info.device_id}"
    yield f"{'thrift_port':25}: {info.thrift_port}"


@command("reset_state")
def reset_state(session: Session, _tokens: list[str]) -> None:
    """Forget all entries, groups, sessions and values."""
    session.standard("bm_reset_state")


@command("write_config_to_file <file>")
def write_config_to_file(session: Session, tokens: list[str]) -> None:
    """Write the program's JSON to a file."""
    try:
        Path(tokens[0]).write_text(session.standard("bm_get_config"), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {tokens[0]}: {error.strerror}") from None
