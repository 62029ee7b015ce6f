"""Updates that undo updates, for batches that are applied as a whole or not at all (12.2)."""

from __future__ import annotations

from typing import Any

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity, Update

from ofan_p4.softswitch.base.errors import EntryError
from ofan_p4.softswitch.p4rt.contract import Reader

# Numbers and messages that say which entity is meant, whatever its kind.
IDS = {
    "action_profile_id",
    "member_id",
    "group_id",
    "digest_id",
    "value_set_id",
    "counter_id",
    "meter_id",
    "register_id",
}
PARTS = {"index", "table_entry"}


def undo_of(update: Update, readers: dict[str, Reader]) -> Update | None:
    """Return the update that restores the present state; None without anything to restore."""
    if update.type == Update.INSERT:
        return Update(type=Update.DELETE, entity=update.entity)

    before = _present(update.entity, readers)
    if before is None:
        return None

    kind = Update.INSERT if update.type == Update.DELETE else Update.MODIFY
    return Update(type=kind, entity=before)


def _present(entity: Entity, readers: dict[str, Reader]) -> Entity | None:
    """Return an entity as it is, None where it does not exist."""
    kind = entity.WhichOneof("entity")
    if kind not in readers:
        return None

    query = Entity()
    _identify(kind, getattr(entity, kind), getattr(query, kind))
    response = p4runtime_pb2.ReadResponse()
    try:
        readers[kind](getattr(query, kind), response.entities.add)
    except EntryError:
        return None

    # Without a match a read selects all entries of a table.
    matching = [item for item in response.entities if _is_same(kind, item, query)]
    return matching[0] if matching else None


def _identify(kind: str, message: Any, query: Any) -> None:
    """Copy the entity's key fields, and ask for all that belongs to it."""
    match kind:
        case "table_entry":
            query.table_id = message.table_id
            query.match.extend(message.match)
            query.priority = message.priority
            query.is_default_action = message.is_default_action
            query.counter_data.SetInParent()
            query.meter_config.SetInParent()
        case "packet_replication_engine_entry":
            inner = message.WhichOneof("type")
            query.multicast_group_entry.multicast_group_id = (
                message.multicast_group_entry.multicast_group_id
            )
            if inner == "clone_session_entry":
                query.clone_session_entry.session_id = message.clone_session_entry.session_id
        case _:
            for name in IDS & {*message.DESCRIPTOR.fields_by_name}:
                setattr(query, name, getattr(message, name))

            for name in PARTS & {*message.DESCRIPTOR.fields_by_name}:
                getattr(query, name).CopyFrom(getattr(message, name))


def _is_same(kind: str, candidate: Entity, query: Entity) -> bool:
    if kind != "table_entry":
        return True

    first, second = candidate.table_entry, query.table_entry
    return first.priority == second.priority and _match_of(first) == _match_of(second)


def _match_of(entry: p4runtime_pb2.TableEntry) -> set[bytes]:
    return {field.SerializeToString(deterministic=True) for field in entry.match}
