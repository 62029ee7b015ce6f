"""The reference of experiments' keys: whole, as documented, and as files are read."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ofan
from emulation.errors import UnsupportedError
from emulation.mininet import limits
from emulation.virtual import refusals
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES, PUBLISHED
from fattree.texts.experiment_file import parse_experiment
from fattree.texts.schema import schema
from fattree.texts.shipped import EXPERIMENTS
from pages.reference import UNITS, dotted, meaning, networks, page, rows, unit
from sim.arrays.network import build

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

jsonschema = pytest.importorskip("jsonschema")
PAGE = Path(ofan.__file__).parent / "docs" / "experiments.md"


def test_every_key_has_a_sentence_below_it() -> None:
    assert [dotted(row) for row in rows() if not meaning(row).endswith(".")] == []


def test_the_page_is_that_of_the_schema() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "make reference writes it again"


def test_what_a_name_ends_in_is_a_unit() -> None:
    numbers = [row for row in rows() if "_" in row.key]
    assert {unit(row.key) for row in numbers} >= set(UNITS.values())


# Room for the packets that come until processes heed a pause.
PFC: dict[str, Any] = {"fabric": {"flow_control": "pfc", "queue_bytes": 2_000_000}}
# Settings with which each key that some networks refuse has an effect.
REFUSED: dict[str, dict[str, Any]] = {
    "load_balancer.queue_staleness_ns": {"load_balancer": {"queue_staleness_ns": 100}},
    "transport.trimming": {"transport": {"trimming": True}},
    "failures.local_repair": {"failures": {"local_repair": True}},
    "failures.storms.host": {"failures": {"storms": [{"host": "h0_0_0"}]}, **PFC},
    "fabric.buffer": {"fabric": {"buffer": "shared"}},
    "failures.events.host": {
        "failures": {"events": [{"host": "h0_0_0", "down_ns": 0, "up_ns": 9}]}
    },
}


@pytest.mark.parametrize("key", list(REFUSED))
def test_networks_refuse_what_they_do_not_heed(key: str) -> None:
    # Slow enough for Mininet.
    slow = {"k": 2, "rate_gbps": 0.01, "latency_ns": 1e6}
    content = {"fabric": {}, **REFUSED[key]}
    scenario = Scenario.model_validate({**content, "fabric": {**slow, **content["fabric"]}})
    refusing: dict[str, Callable[[], object]] = {
        "virtual": lambda: refusals.refuse_unsupported(scenario),
        "mininet": lambda: limits.refuse_unsupported(scenario),
        "sim": lambda: build(scenario),
    }
    (heeding,) = (networks(row) for row in rows() if dotted(row) == key)
    assert heeding
    for network in refusing:
        if network in heeding:
            refusing[network]()
        else:
            with pytest.raises((UnsupportedError, ExperimentError)):
                refusing[network]()


def validator() -> Any:
    said = CliRunner().invoke(ofan.cli, ["experiments", "schema"])
    assert said.exit_code == 0
    return jsonschema.Draft202012Validator(json.loads(said.stdout))


@pytest.mark.parametrize("table", ["host_rule", "agent_packet"])
def test_a_text_may_be_left_to_its_file(table: str) -> None:
    assert validator().is_valid({table: {"file": "mine.py"}})
    assert not validator().is_valid({table: {"text": ""}})
    texts = [row for row in page().splitlines() if row.startswith("| `text` |")]
    assert len(texts) == 2 and not any("required" in row for row in texts)


def test_all_experiments_of_ours_are_valid() -> None:
    check = validator()
    check.check_schema(check.schema)
    for path in EXPERIMENTS.rglob("*.toml"):
        check.validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        "[fabric]\nk = 7\n",
        "[fabric]\nports = 4\n",
        'policies = ["best"]\n',
        '[collective]\nmessage_bytes = "1 Mob"\n',
        "[collective]\nmessage_bytes = 0\n",
        '[collective]\nmatrix = "diagonal"\n',
        "seeds = 0\n",
    ],
)
def test_what_is_refused_in_a_file_is_invalid(text: str) -> None:
    with pytest.raises(ExperimentError):
        parse_experiment(text, "x.toml")
    assert not validator().is_valid(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        '[collective]\nmessage_bytes = "1MiB"\n',
        "[fabric]\nthreshold_bytes = 4096\n[failures]\nconvergence_rtt = inf\n",
        'policies = ["ofan"]\n[[failures.events]]\nlink = "edge0_0-agg0_0"\ndown_ns = 5\n',
    ],
)
def test_what_a_file_may_say_is_valid(text: str) -> None:
    parse_experiment(text, "x.toml")
    assert validator().is_valid(tomllib.loads(text))


def test_editors_can_offer_load_balancers_and_meanings() -> None:
    whole = schema()
    assert "Ofan" in whole["title"], "an editor says whose file it takes this for"
    assert whole["properties"]["policies"]["items"]["enum"] == [*POLICIES, *PUBLISHED]
    assert "default" in whole["$defs"]["Fabric"]["properties"]["k"]
    assert whole["$defs"]["Fabric"]["properties"]["k"]["description"].startswith("Ports")
