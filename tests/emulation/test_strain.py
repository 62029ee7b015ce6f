"""Mininet's warning where hosts offer more than this machine's processes carry."""

from pathlib import Path

import ofan
from emulation.mininet.limits import COMFORTABLE_PACKETS_PER_SECOND, strain
from fattree.experiment.model import Scenario
from fattree.texts.experiment_file import load_experiment

FILE = Path(ofan.__file__).parent / "experiments" / "mininet_k4.toml"


def scenario(rate_gbps: float) -> Scenario:
    return next(load_experiment(FILE, [f"fabric.rate_gbps={rate_gbps}"]).scenarios())


def test_what_the_example_offers_is_carried_by_one_processor() -> None:
    assert strain(next(load_experiment(FILE).scenarios()), 1) == ""


def test_too_much_is_told_with_what_the_machine_carries() -> None:
    line = strain(scenario(0.01), 2)
    assert f"2 processors carry some {2 * COMFORTABLE_PACKETS_PER_SECOND:,}" in line
    assert line.startswith("fabric.rate_gbps = 0.01 offers ")


def test_more_processors_carry_more() -> None:
    assert strain(scenario(0.01), 64) == ""
