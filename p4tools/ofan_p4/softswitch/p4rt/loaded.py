"""A pipeline configuration with the handlers of its entities: how they are written and read.

Another one's entities can be carried over, as RECONCILE_AND_COMMIT asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity, Update
from p4.v1.p4runtime_pb2 import ForwardingPipelineConfig as Config

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.control.pipeline import Pipeline
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4rt.action_profiles import ActionProfiles
from ofan_p4.softswitch.p4rt.arrays import Arrays
from ofan_p4.softswitch.p4rt.contract import Add, Contract, Reader
from ofan_p4.softswitch.p4rt.device_config import bmv2_json
from ofan_p4.softswitch.p4rt.digests import Digests
from ofan_p4.softswitch.p4rt.replication import ReplicationEngine, ValueSets
from ofan_p4.softswitch.p4rt.rollback import undo_of
from ofan_p4.softswitch.p4rt.table_entries import TableEntries
from ofan_p4.softswitch.p4rt.translation import Translations
from ofan_p4.softswitch.state.replication import Replication

Writer = Callable[[int, Any], None]
# In this order: members before the groups that have them, groups before the entries that name them.
CARRIED = (
    "action_profile_member",
    "action_profile_group",
    "table_entry",
    "value_set_entry",
    "digest_entry",
)
CELLS = ("counter_entry", "meter_entry", "register_entry")


@dataclass(slots=True)
class Loaded:
    """A pipeline configuration with the handlers of its entities."""

    config: Config
    pipeline: Pipeline
    contract: Contract
    entries: TableEntries
    digests: Digests
    replication: Replication
    writers: dict[str, Writer]
    readers: dict[str, Reader]


def load(
    config: Config,
    switch: Switch,
    translations: Translations,
    *,
    wall_ns: Callable[[], int],
    send_digests: Callable[[p4runtime_pb2.DigestList], None],
) -> Loaded:
    """Load a configuration that the switch accepts, but do not commit it."""
    pipeline = switch.verify(bmv2_json(config.p4_device_config))
    contract = Contract(config.p4info, pipeline, translations)
    entries = TableEntries(contract, switch.clock)
    digests = Digests(contract, switch.clock, wall_ns, send_digests)
    profiles = ActionProfiles(contract)
    arrays = Arrays(contract, entries)
    replication = Replication()
    sets = ValueSets(contract)
    engine = ReplicationEngine(replication)
    # A copy: the caller may change its message.
    stored = Config()
    stored.CopyFrom(config)
    handlers: dict[str, tuple[Writer, Reader]] = {
        "table_entry": (entries.write, entries.read),
        "action_profile_member": (profiles.write_member, profiles.read_member),
        "action_profile_group": (profiles.write_group, profiles.read_group),
        "counter_entry": (arrays.write_counter, arrays.read_counter),
        "direct_counter_entry": (arrays.write_direct_counter, arrays.read_direct_counter),
        "meter_entry": (arrays.write_meter, arrays.read_meter),
        "direct_meter_entry": (arrays.write_direct_meter, arrays.read_direct_meter),
        "register_entry": (arrays.write_register, arrays.read_register),
        "packet_replication_engine_entry": (engine.write, engine.read),
        "value_set_entry": (sets.write, sets.read),
        "digest_entry": (digests.write, digests.read),
    }

    writers = {name: writer for name, (writer, _) in handlers.items()}
    readers = {name: reader for name, (_, reader) in handlers.items()}
    return Loaded(
        stored,
        pipeline,
        contract,
        entries=entries,
        digests=digests,
        replication=replication,
        writers=writers,
        readers=readers,
    )


def write_update(loaded: Loaded, update: Update) -> EntryError | None:
    """Apply an update; return why it was refused, None where it was not."""
    kind = update.entity.WhichOneof("entity")
    try:
        if update.type not in (Update.INSERT, Update.MODIFY, Update.DELETE):
            raise EntryError(Code.INVALID_ARGUMENT, "the update has no type")

        if kind not in loaded.writers:
            raise EntryError(
                Code.INVALID_ARGUMENT if kind is None else Code.UNIMPLEMENTED, f"entity {kind}"
            )

        loaded.writers[kind](update.type, getattr(update.entity, kind))
    except EntryError as error:
        return error

    return None


def write_all_or_none(loaded: Loaded, updates: Sequence[Update]) -> list[EntryError | None]:
    """Apply updates until one fails, which undoes those before it."""
    undo: list[Update] = []
    for number, update in enumerate(updates):
        back = undo_of(update, loaded.readers)
        error = write_update(loaded, update)
        if error is None:
            undo += [back] if back is not None else []
            continue

        for step in reversed(undo):
            write_update(loaded, step)

        aborted = EntryError(Code.ABORTED, "another update of the batch failed")
        return [error if index == number else aborted for index in range(len(updates))]

    return [None] * len(updates)


def read_entity(loaded: Loaded, entity: Entity, add: Add) -> EntryError | None:
    """Add the entities that one selects; return why it was refused, None where it was not."""
    kind = entity.WhichOneof("entity")
    try:
        if kind not in loaded.readers:
            raise EntryError(
                Code.INVALID_ARGUMENT if kind is None else Code.UNIMPLEMENTED, f"entity {kind}"
            )

        loaded.readers[kind](getattr(entity, kind), add)
    except EntryError as error:
        return error

    return None


def carry_over(old: Loaded, fresh: Loaded) -> None:
    """Write the whole forwarding state of one pipeline into another.

    An EntryError names the mismatch.
    """
    for table in fresh.pipeline.tables:
        # Entries that the program declares and that may change are among those carried over.
        for _, _, record in [entry for entry in table if not entry[2].is_const]:
            table.delete(record.match, record.priority)

    for kind in (*CARRIED, *CELLS):
        for entity in _everything(old, kind):
            message = getattr(entity, kind)
            is_modified = kind in (*CELLS, "value_set_entry") or getattr(
                message, "is_default_action", False
            )
            if not getattr(message, "is_const", False):
                fresh.writers[kind](Update.MODIFY if is_modified else Update.INSERT, message)

    for name in ("groups", "sessions", "metadata"):
        getattr(fresh.replication, name).update(getattr(old.replication, name))


def _everything(loaded: Loaded, kind: str) -> list[Entity]:
    """Return all entities of a kind.

    Table entries with their counters and meters, and changed default entries too.
    """
    response = p4runtime_pb2.ReadResponse()
    query = getattr(Entity(), kind)
    if kind != "table_entry":
        loaded.readers[kind](query, response.entities.add)
        return list(response.entities)

    query.counter_data.SetInParent()
    query.meter_config.SetInParent()
    loaded.entries.read(query, response.entities.add)

    for number, table in loaded.contract.tables.items():
        if table.runtime.default != table.runtime.initial_default:
            query.table_id = number
            query.is_default_action = True
            loaded.entries.read(query, response.entities.add)

    return list(response.entities)
