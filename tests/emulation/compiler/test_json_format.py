"""The JSON holds together: its names are declared, and its numbers have the format's widths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ofan_p4.compiler import compile_file, compile_source

HERE = Path(__file__).parent
P4SRC = HERE.parents[2] / "p4src"
# Every third case: the rest would only cost time, and test_cases_on_bmv2.py has BMv2 itself read
# them all.
PROGRAMS = [*sorted((HERE / "cases").glob("*.p4"))[::3], *sorted(P4SRC.glob("*.p4"))]
Json = dict[str, Any]

# p4c's `primitives` of simple_switch with the number of parameters that BMv2 insists on.
PRIMITIVES = {
    "assign": 2,
    "assign_VL": 2,
    "assign_header": 2,
    "assign_header_stack": 2,
    "assign_union": 2,
    "assign_union_stack": 2,
    "add_header": 1,
    "remove_header": 1,
    "push": 2,
    "pop": 2,
    "exit": 0,
    "assert": 1,
    "assume": 1,
    "log_msg": 2,
    "_jump": 1,
    "_jump_if_zero": 2,
    "mark_to_drop": 1,
    "register_read": 3,
    "register_write": 3,
    "count": 2,
    "execute_meter": 3,
    "modify_field_with_hash_based_offset": 4,
    "modify_field_rng_uniform": 3,
    "generate_digest": 2,
    "clone_ingress_pkt_to_egress": 2,
    "clone_egress_pkt_to_egress": 2,
    "resubmit": 1,
    "recirculate": 1,
    "truncate": 1,
}


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda path: path.stem)
def program(request: pytest.FixtureRequest) -> Json:
    return compile_file(request.param, [P4SRC / "include", P4SRC]).json


def nodes(value: Any) -> Iterator[Json]:
    """Yield every object inside."""
    if isinstance(value, dict):
        yield value

    for item in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from nodes(item)


def names(program: Json, key: str) -> list[str]:
    return [item["name"] for item in program[key]]


def all_tables(program: Json) -> list[Json]:
    return [table for pipeline in program["pipelines"] for table in pipeline["tables"]]


def fields(program: Json) -> dict[str, dict[str, Any]]:
    types = {
        item["name"]: {name: width for name, width, *_ in item["fields"]}
        for item in program["header_types"]
    }
    return {
        item["name"]: {**types[item["header_type"]], "$valid$": 1} for item in program["headers"]
    }


def test_fields_exist(program: Json) -> None:
    header_fields = fields(program)
    for node in nodes(program):
        if node.get("type") == "field":
            header, name = node["value"]
            assert name in header_fields[header]


def test_named_objects_exist(program: Json) -> None:
    declared = {
        "header": names(program, "headers"),
        "regular": names(program, "headers"),
        "header_stack": names(program, "header_stacks"),
        "header_union": names(program, "header_unions"),
        "register_array": names(program, "register_arrays"),
        "counter_array": names(program, "counter_arrays"),
        "meter_array": names(program, "meter_arrays"),
        "calculation": names(program, "calculations"),
        "parse_vset": names(program, "parse_vsets"),
    }
    for node in nodes(program):
        if node.get("type") in declared and isinstance(node.get("value"), str):
            assert node["value"] in declared[node["type"]]


def test_every_step_of_a_pipeline_exists(program: Json) -> None:
    for pipeline in program["pipelines"]:
        steps = {
            None,
            *(item["name"] for key in ("tables", "conditionals") for item in pipeline[key]),
        }
        assert len(steps) == 1 + len(pipeline["tables"]) + len(pipeline["conditionals"])
        assert pipeline["init_table"] in steps

        for table in pipeline["tables"]:
            assert {table["base_default_next"], *table["next_tables"].values()} <= steps

        for conditional in pipeline["conditionals"]:
            assert {conditional["true_next"], conditional["false_next"]} <= steps


def test_tables_name_their_actions(program: Json) -> None:
    actions = {item["id"]: item for item in program["actions"]}
    for table in all_tables(program):
        assert [actions[number]["name"] for number in table["action_ids"]] == table["actions"]
        assert set(table["next_tables"]) in ({"__HIT__", "__MISS__"}, set(table["actions"]))
        entries = [entry["action_entry"] for entry in table.get("entries", [])]

        for choice in [*entries, *([table["default_entry"]] if "default_entry" in table else [])]:
            assert choice["action_id"] in table["action_ids"]
            assert len(choice["action_data"]) == len(actions[choice["action_id"]]["runtime_data"])


def test_entries_have_the_width_of_their_keys(program: Json) -> None:
    widths = fields(program)
    for table in all_tables(program):
        for entry in table.get("entries", []):
            for match, key in zip(entry["match_key"], table["key"], strict=True):
                width = (widths[key["target"][0]][key["target"][1]] + 7) // 8
                assert match["match_type"] == key["match_type"]
                for part in ("key", "mask", "start", "end"):
                    assert part not in match or len(match[part]) == 2 + 2 * width


def test_primitives_have_their_parameters(program: Json) -> None:
    for node in nodes([program["actions"], program["parsers"]]):
        if "op" in node and "parameters" in node and node["op"] in PRIMITIVES:
            assert len(node["parameters"]) == PRIMITIVES[node["op"]]


def test_jumps_stay_inside_their_action(program: Json) -> None:
    for action in program["actions"]:
        for primitive in action["primitives"]:
            assert primitive["op"] in PRIMITIVES
            if primitive["op"] in ("_jump", "_jump_if_zero"):
                assert (
                    0 <= int(primitive["parameters"][-1]["value"], 16) <= len(action["primitives"])
                )


def test_run_time_data_is_declared(program: Json) -> None:
    for action in program["actions"]:
        for node in nodes(action["primitives"]):
            if node.get("type") in ("runtime_data", "local"):
                assert 0 <= node["value"] < len(action["runtime_data"])


def test_parser_states_exist_and_match_whole_bytes(program: Json) -> None:
    parser = program["parsers"][0]
    state_names = {None, *(state["name"] for state in parser["parse_states"])}
    widths = fields(program)

    assert parser["init_state"] in state_names and len(state_names) == 1 + len(
        parser["parse_states"]
    )

    for state in parser["parse_states"]:
        keys = [key["value"] for key in state["transition_key"] if key["type"] == "field"]
        total = sum((widths[header][name] + 7) // 8 for header, name in keys)
        for transition in state["transitions"]:
            assert transition["next_state"] in state_names
            if transition["type"] == "hexstr" and len(keys) == len(state["transition_key"]):
                assert len(transition["value"]) == 2 + 2 * total


def test_ids_are_unique(program: Json) -> None:
    everywhere = {
        key: [item["id"] for item in program[key]]
        for key in program
        if isinstance(program[key], list)
        and program[key]
        and isinstance(program[key][0], dict)
        and "id" in program[key][0]
    }
    for key, ids in everywhere.items():
        assert len(set(ids)) == len(ids), key

    tables = [table["id"] for table in all_tables(program)]

    assert len(set(tables)) == len(tables)


def test_headers_have_whole_bytes(program: Json) -> None:
    for item in program["header_types"]:
        widths = [width for _, width, *_ in item["fields"]]
        assert "*" in widths or sum(widths) % 8 == 0


def test_what_simple_switch_requires_is_there(program: Json) -> None:
    standard = fields(program)["standard_metadata"]

    assert {"ingress_port", "packet_length", "instance_type", "egress_spec", "egress_port"} <= set(
        standard
    )
    assert {alias for alias, _ in program["field_aliases"]} >= {
        "queueing_metadata.deq_qdepth",
        "intrinsic_metadata.mcast_grp",
    }
    assert program["__meta__"]["version"] == [2, 23]
    assert [item["name"] for item in program["pipelines"]] == ["ingress", "egress"]


def test_places_are_those_of_the_source() -> None:
    source = (HERE / "cases" / "hit_and_switch.p4").read_text()
    program = compile_source(source, str(HERE / "cases" / "hit_and_switch.p4")).json
    table = next(item for item in all_tables(program) if item["name"] == "CaseIngress.chosen")
    line = source.split("\n").index("    table chosen {")

    assert table["source_info"]["line"] == line + 1
    assert table["source_info"]["column"] == len("    table ")
    assert table["source_info"]["source_fragment"] == "chosen"

    condition = program["pipelines"][0]["conditionals"][0]["source_info"]

    assert condition["source_fragment"] == "hdr.data.c == 9"


@pytest.mark.parametrize("path", PROGRAMS[::4], ids=lambda path: path.stem)
def test_compiling_twice_gives_the_same_bytes(path: Path) -> None:
    first, second = (compile_file(path, [P4SRC / "include", P4SRC]).json for _ in range(2))
    assert first == second


@pytest.mark.parametrize("case", ["parser_lookahead", "parser_lookahead_stack"])
def test_bmv2_finds_a_packet_too_short_for_all_that_is_looked_at(case: str) -> None:
    # Its check is of a lookahead's width, whatever its offset.
    parser = compile_file(HERE / "cases" / f"{case}.p4").json["parsers"][0]
    looks = 0

    for state in parser["parse_states"]:
        whole = 0
        for op in state["parser_ops"]:
            source = op["parameters"][-1]
            if op["op"] in ("extract", "extract_VL", "advance"):
                whole = 0
            elif source.get("type") == "lookahead":
                offset, bits = source["value"]
                whole = max(whole, bits)
                looks += 1
                assert offset + bits <= whole

    assert looks > 2
