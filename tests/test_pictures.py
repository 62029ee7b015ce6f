"""Every picture of the repository is made by `make pictures`, or says how it is made."""

from pathlib import Path

import pytest
from PIL import Image

from benchmarks.pictures import OTHERS, PICTURES, demo, model_of, name_model
from fattree.texts.experiment_file import load_experiment
from sim.sweeps.sweeping import simulate

ROOT = Path(__file__).resolve().parents[1]


def test_every_picture_has_its_maker() -> None:
    shown = {
        str(path.relative_to(ROOT))
        for kind in ("png", "svg")
        for path in (ROOT / "docs").rglob(f"*.{kind}")
    }
    assert shown == {*PICTURES, *OTHERS}


def test_a_picture_names_its_model_and_is_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    Image.new("RGB", (30, 20), "red").save(path, dpi=(150, 150))
    assert model_of(path) == ""
    name_model(path, "0123")
    name_model(path, "4567")
    assert model_of(path) == "4567"
    with Image.open(path) as picture:
        assert (picture.size, picture.getpixel((3, 3))) == ((30, 20), (255, 0, 0))
        assert picture.info["dpi"] == pytest.approx((150, 150), abs=0.1)


@pytest.mark.slow
def test_the_demo_is_drawn_with_the_numbers_of_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "demo.png"
    numbers = demo(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(numbers) == 6
    experiment = load_experiment(ROOT / "experiments" / "demo.toml")
    for scenario in experiment.scenarios():
        record = simulate(scenario)
        shown = numbers[f"demo.toml, {scenario.policy}"]
        assert shown == [record.cct_ps, record.max_queue_bytes]
