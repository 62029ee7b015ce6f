"""A builder of small BMv2 JSON programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

STANDARD = {
    "ingress_port": 9,
    "egress_spec": 9,
    "egress_port": 9,
    "instance_type": 32,
    "packet_length": 32,
    "enq_timestamp": 32,
    "enq_qdepth": 19,
    "deq_timedelta": 32,
    "deq_qdepth": 19,
    "ingress_global_timestamp": 48,
    "egress_global_timestamp": 48,
    "mcast_grp": 16,
    "egress_rid": 16,
    "checksum_error": 1,
    "parser_error": 32,
    "priority": 3,
    "_padding": 3,
}
ALIASES = {
    "queueing_metadata": ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"),
    "intrinsic_metadata": (
        "ingress_global_timestamp",
        "egress_global_timestamp",
        "mcast_grp",
        "egress_rid",
        "priority",
    ),
}
ERRORS = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "Invalid",
]
Json = Any


def field(name: str) -> Json:
    """`ipv4.ttl` as an operand."""
    header, _, member = name.rpartition(".")
    return {"type": "field", "value": [header, member]}


def number(value: int) -> Json:
    """A constant as an operand."""
    return {"type": "hexstr", "value": hex(value)}


def op(name: str, left: Json, right: Json, **more: Json) -> Json:
    """An expression; plain strings are fields, plain integers constants."""
    node = {"op": name, "left": operand(left), "right": operand(right), **more}
    return {"type": "expression", "value": node}


def operand(value: Json) -> Json:
    """A field name, a number or an operand as an operand."""
    if isinstance(value, str):
        return field(value)
    return number(value) if isinstance(value, int) else value


def call(name: str, *parameters: Json) -> Json:
    """A primitive call."""
    return {"op": name, "parameters": [operand(parameter) for parameter in parameters]}


def header(name: str) -> Json:
    """A header as an operand."""
    return {"type": "header", "value": name}


class Bmv2:
    """Collects the parts of a program; everything gets its id in order."""

    field = staticmethod(field)
    number = staticmethod(number)
    op = staticmethod(op)
    call = staticmethod(call)
    header_operand = staticmethod(header)

    def __init__(self) -> None:
        self.root: dict[str, Json] = {
            "header_types": [],
            "headers": [],
            "header_stacks": [],
            "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": []}],
            "parse_vsets": [],
            "deparsers": [{"name": "deparser", "id": 0, "order": []}],
            "actions": [],
            "pipelines": [
                {
                    "name": name,
                    "id": i,
                    "init_table": None,
                    "tables": [],
                    "conditionals": [],
                    "action_profiles": [],
                }
                for i, name in enumerate(("ingress", "egress"))
            ],
            "calculations": [],
            "checksums": [],
            "register_arrays": [],
            "counter_arrays": [],
            "meter_arrays": [],
            "learn_lists": [],
            "field_lists": [],
            "errors": [[name, value] for value, name in enumerate(ERRORS)],
            "field_aliases": [
                [f"{group}.{name}", ["standard_metadata", name]]
                for group, names in ALIASES.items()
                for name in names
            ],
        }
        self.p4info_tables: list[dict[str, Json]] = []
        self.metadata("standard_metadata", STANDARD)

    def metadata(self, name: str, fields: Mapping[str, int]) -> None:
        """Declare a metadata struct."""
        self._declare(name, [[n, bits] for n, bits in fields.items()], metadata=True)

    def header(
        self, name: str, *, emit: bool = True, max_length: int = 0, **fields: int | str
    ) -> None:
        """Declare a header; a width of "*" is a varbit."""
        self._declare(
            name, [[n, bits] for n, bits in fields.items()], metadata=False, max_length=max_length
        )
        if emit:
            self.root["deparsers"][0]["order"].append(name)

    def stack(self, name: str, size: int, **fields: int) -> None:
        """Declare a header stack."""
        first = len(self.root["headers"])
        for i in range(size):
            kind = f"{name}_t"
            self._declare(
                f"{name}[{i}]", [[n, b] for n, b in fields.items()], metadata=False, kind=kind
            )
            self.root["deparsers"][0]["order"].append(f"{name}[{i}]")

        self.root["header_stacks"].append(
            {
                "name": name,
                "id": 0,
                "header_type": f"{name}_t",
                "header_ids": [*range(first, first + size)],
            }
        )

    def _declare(
        self, name: str, fields: list[Json], metadata: bool, max_length: int = 0, kind: str = ""
    ) -> None:
        kind = kind or f"{name}_t"
        if kind not in {item["name"] for item in self.root["header_types"]}:
            self.root["header_types"].append(
                {"name": kind, "id": 0, "fields": fields, "max_length": max_length}
            )

        self.root["headers"].append(
            {
                "name": name,
                "id": len(self.root["headers"]),
                "header_type": kind,
                "metadata": metadata,
            }
        )

    def state(
        self,
        name: str,
        ops: Sequence[Json] = (),
        key: Sequence[Json] = (),
        select: Mapping[Json, str | None] | None = None,
    ) -> None:
        """Declare a parser state. `select` maps hex strings (None: default) to states."""
        transitions = [
            {
                "type": "default" if value is None else "hexstr",
                "value": None if value is None else value.partition("&")[0],
                "mask": (value.partition("&")[2] or None) if value else None,
                "next_state": target,
            }
            for value, target in (select or {None: None}).items()
        ]
        self.root["parsers"][0]["parse_states"].append(
            {
                "name": name,
                "id": len(self.root["parsers"][0]["parse_states"]),
                "parser_ops": list(ops),
                "transition_key": [operand(item) for item in key],
                "transitions": transitions,
            }
        )

    @staticmethod
    def extract(name: str, kind: str = "regular") -> Json:
        """A parser operation that extracts a header."""
        return {"op": "extract", "parameters": [{"type": kind, "value": name}]}

    def action(self, name: str, primitives: Sequence[Json], **parameters: int) -> int:
        """Declare an action and return its id."""
        data = [{"name": n, "bitwidth": bits} for n, bits in parameters.items()]
        self.root["actions"].append(
            {
                "name": name,
                "id": len(self.root["actions"]),
                "runtime_data": data,
                "primitives": list(primitives),
            }
        )
        return len(self.root["actions"]) - 1

    @staticmethod
    def argument(index: int) -> Json:
        """A run-time parameter as an operand."""
        return {"type": "runtime_data", "value": index}

    def table(
        self,
        name: str,
        key: Mapping[str, str],
        actions: Sequence[int],
        default: int | None = None,
        default_data: Sequence[int] = (),
        pipeline: str = "ingress",
        following: Json = None,
        **more: Json,
    ) -> None:
        """Declare a table (`key` maps fields to match kinds) that always goes on to `following`."""
        kinds = set(key.values())
        match_type = next((kind for kind in ("range", "ternary", "lpm") if kind in kinds), "exact")
        if "optional" in kinds and match_type != "range":
            match_type = "ternary"
        table = {
            "name": name,
            "id": len(self.p4info_tables),
            "match_type": match_type,
            "type": "simple",
            "max_size": 1024,
            "with_counters": False,
            "key": [
                {"match_type": kind, "name": target, "target": field(target)["value"], "mask": None}
                for target, kind in key.items()
            ],
            "action_ids": list(actions),
            "actions": [self.root["actions"][i]["name"] for i in actions],
            "base_default_next": following,
            "next_tables": {self.root["actions"][i]["name"]: following for i in actions},
        }
        if default is not None:
            data = [hex(value) for value in default_data]
            table["default_entry"] = {
                "action_id": default,
                "action_data": data,
                "action_const": False,
            }

        table.update(more)
        chosen = self.root["pipelines"][["ingress", "egress"].index(pipeline)]
        chosen["tables"].append(table)
        self.p4info_tables.append(table)
        if chosen["init_table"] is None:
            chosen["init_table"] = name

    def run(
        self,
        name: str,
        primitives: Sequence[Json],
        pipeline: str = "ingress",
        following: Json = None,
    ) -> None:
        """Declare a step that always does the same."""
        action = self.action(f"{name}_action", primitives)
        self.table(
            name,
            {},
            [action],
            default=action,
            pipeline=pipeline,
            following=following,
            default_entry={
                "action_id": action,
                "action_data": [],
                "action_const": True,
                "action_entry_const": True,
            },
        )

    def source(self) -> bytes:
        """Return the program as BMv2 JSON."""
        return json.dumps(self.root).encode()
