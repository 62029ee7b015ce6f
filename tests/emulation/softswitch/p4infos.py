"""The P4Info that describes a program of the builder."""

from __future__ import annotations

from collections.abc import Sequence

from tests.emulation.softswitch.bmv2_json import Bmv2, Json

# isort: split
from p4.config.v1 import p4info_pb2


def bits_of(program: Bmv2, target: Sequence[str]) -> int:
    """Return the width of a field."""
    instance = next(item for item in program.root["headers"] if item["name"] == target[0])
    kind = next(
        item for item in program.root["header_types"] if item["name"] == instance["header_type"]
    )
    return int(next(bits for name, bits in kind["fields"] if name == target[1]))


KINDS = {"exact": 2, "lpm": 3, "ternary": 4, "range": 5, "optional": 6}
TABLE, ACTION, REGISTER, COUNTER, METER, PROFILE, DIRECT, DIGEST, VALUE_SET = (
    n << 24 for n in range(1, 10)
)


def p4info_of(program: Bmv2) -> p4info_pb2.P4Info:
    """Return the P4Info of a program.

    The ids are a prefix per kind plus 1, 2, 3 in order of declaration.
    """
    info = p4info_pb2.P4Info()
    for i, action in enumerate(program.root["actions"]):
        item = info.actions.add()
        item.preamble.id, item.preamble.name = ACTION + i + 1, action["name"]
        for j, data in enumerate(action["runtime_data"]):
            item.params.add(id=j + 1, name=data["name"], bitwidth=data["bitwidth"])

    for i, table in enumerate(program.p4info_tables):
        describe_table(program, info, i, table)
    for prefix, arrays, items in (
        (REGISTER, program.root["register_arrays"], info.registers),
        (COUNTER, program.root["counter_arrays"], info.counters),
        (METER, program.root["meter_arrays"], info.meters),
    ):
        for i, array in enumerate(array for array in arrays if not array.get("is_direct")):
            item = items.add(size=array["size"])
            item.preamble.id, item.preamble.name = prefix + i + 1, array["name"]

    for i, profile in enumerate(program.root["pipelines"][0]["action_profiles"]):
        item = info.action_profiles.add(
            size=profile["max_size"], with_selector="selector" in profile
        )
        item.preamble.id, item.preamble.name = PROFILE + i + 1, profile["name"]
        used = enumerate(program.p4info_tables)
        item.table_ids.extend(
            TABLE + j + 1 for j, table in used if table.get("action_profile") == profile["name"]
        )

    for i, learn in enumerate(program.root["learn_lists"]):
        item = info.digests.add()
        item.preamble.id, item.preamble.name = DIGEST + i + 1, learn["name"]
        item.type_spec.struct.name = "digest_t"

    for i, value_set in enumerate(program.root["parse_vsets"]):
        item = info.value_sets.add(size=4)
        item.preamble.id, item.preamble.name = VALUE_SET + i + 1, value_set["name"]
        item.match.add(id=1, name="key", bitwidth=value_set["compressed_bitwidth"], match_type=2)

    return info


def describe_table(program: Bmv2, info: p4info_pb2.P4Info, i: int, table: Json) -> None:
    """Add a table to a P4Info."""
    item = info.tables.add(size=table["max_size"], is_const_table=bool(table.get("entries")))
    item.preamble.id, item.preamble.name = TABLE + i + 1, table["name"]
    for j, key in enumerate(table["key"]):
        bits = bits_of(program, key["target"])
        item.match_fields.add(
            id=j + 1, name=key["name"], bitwidth=bits, match_type=KINDS[key["match_type"]]
        )

    for action in table["action_ids"]:
        item.action_refs.add(id=ACTION + action + 1)
    if table.get("action_profile"):
        names = [profile["name"] for profile in program.root["pipelines"][0]["action_profiles"]]
        item.implementation_id = PROFILE + names.index(table["action_profile"]) + 1

    if table["with_counters"]:
        item.direct_resource_ids.append(DIRECT + i + 1)
        counter = info.direct_counters.add(direct_table_id=item.preamble.id)
        counter.preamble.id, counter.preamble.name = DIRECT + i + 1, f"{table['name']}_counter"

    if table.get("direct_meters"):
        item.direct_resource_ids.append(DIRECT + 100 + i)
        meter = info.direct_meters.add(direct_table_id=item.preamble.id)
        meter.preamble.id, meter.preamble.name = DIRECT + 100 + i, table["direct_meters"]
        meter.spec.unit = p4info_pb2.MeterSpec.PACKETS

    if table.get("support_timeout"):
        item.idle_timeout_behavior = p4info_pb2.Table.NOTIFY_CONTROL
