"""A builder of small BMv2 JSON programs, with the P4Info that describes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ofan_p4.softswitch.errors import Code
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError
from ofan_p4.softswitch.switch import Pending, Switch, Transmit

# isort: split
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

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


class Controller:
    """The primary controller of a bench's switch, in process."""

    def __init__(self, bench: Bench, p4info: p4info_pb2.P4Info | None = None) -> None:
        self.bench = bench
        self.p4info = p4info
        self.service = P4RuntimeService(bench.switch)
        self.received: list[p4runtime_pb2.StreamMessageResponse] = []
        self.stream = self.service.open_stream(self.received.append)
        self.become(1)

    def become(self, election_id: int) -> None:
        """Announce an election id."""
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = 1
        request.arbitration.election_id.low = election_id
        self.stream.receive(request)

    def set_pipeline(
        self,
        source: bytes,
        p4info: p4info_pb2.P4Info | None = None,
        action: int = 3,
        cookie: int = 0,
    ) -> None:
        """Send a SetForwardingPipelineConfig, VERIFY_AND_COMMIT by default."""
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1, action=action)
        request.election_id.low = 1
        request.config.p4_device_config = source
        request.config.p4info.CopyFrom(p4info or self.p4info or p4info_pb2.P4Info())
        if cookie:
            request.config.cookie.cookie = cookie
        self.service.set_pipeline(request)

    def write(self, *updates: tuple[str, p4runtime_pb2.Entity]) -> None:
        """Send updates, each a type name and an entity."""
        request = p4runtime_pb2.WriteRequest(device_id=1)
        request.election_id.low = 1
        for kind, entity in updates:
            request.updates.add(type=p4runtime_pb2.Update.Type.Value(kind), entity=entity)
        self.service.write(request)

    def code(self, kind: str, entity: p4runtime_pb2.Entity) -> str:
        """Return the name of the code that one update ends with."""
        try:
            self.write((kind, entity))
        except StatusError as error:
            [detail] = error.details
            return Code(detail.canonical_code).name
        return "OK"

    def read(self, *entities: p4runtime_pb2.Entity) -> list[p4runtime_pb2.Entity]:
        """Return the entities that a read selects."""
        responses = self.service.read(p4runtime_pb2.ReadRequest(device_id=1, entities=entities))
        return [entity for response in responses for entity in response.entities]


class Bench:
    """A switch with a program, without queues: what goes in comes out at once."""

    def __init__(self, program: Bmv2 | bytes, ports: int = 8, cpu_port: int | None = None) -> None:
        self.now_ps = 0
        self.draws: list[tuple[int, int]] = []
        self.switch = Switch(1, lambda: self.now_ps, self._random, range(ports), cpu_port)
        self.switch.load(program if isinstance(program, bytes) else program.source())

    def _random(self, low: int, high: int) -> int:
        self.draws.append((low, high))
        return high

    def send(self, frame: bytes, port: int = 0) -> list[tuple[int, bytes]]:
        """Return the (port, frame) pairs that a frame becomes."""
        return self.drain(self.switch.ingress(port, frame))

    def drain(self, pending: Sequence[Pending]) -> list[tuple[int, bytes]]:
        """Run egress for packets until nothing is left."""
        waiting = [*pending, *self.switch.take_requeued()]
        out: list[Transmit] = []
        for _ in range(100):
            if not waiting:
                break
            out += self.switch.egress(waiting.pop(0))
            waiting += self.switch.take_requeued()
        assert not waiting, "packets go round for ever"
        return [(sent.port, sent.frame) for sent in out]


@pytest.fixture
def program() -> Bmv2:
    """An empty program."""
    return Bmv2()


@pytest.fixture
def new_program() -> Callable[[], Bmv2]:
    """The way to begin a program, for tests that need several."""
    return Bmv2


@pytest.fixture
def bench() -> Callable[..., Bench]:
    """The way to run a program."""
    return Bench


@pytest.fixture
def control() -> Callable[..., Controller]:
    """The way to control a program: a bench and its controller, which has set the pipeline."""

    def start(program: Bmv2, cpu_port: int | None = None, **more: Any) -> Controller:
        controller = Controller(Bench(program, cpu_port=cpu_port), p4info_of(program))
        if more:
            more["edit"](controller.p4info)
        controller.set_pipeline(program.source())
        return controller

    return start
