"""The pictures of README and pages that come from simulated runs, with the data behind them.

    python -m benchmarks.pictures                      all of them (two minutes)
    python -m benchmarks.pictures docs/demo.png        one of them

`docs/pictures.json` keeps the numbers that each picture shows, and the model that gave them: tests
compare these, as pixels depend on fonts. Pictures of a report are drawn from the report's own data.
Each PNG file names the model, too.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner
from PIL import Image, PngImagePlugin

from benchmarks import answers, slow_link
from emulation.commands.demo import PARTS, draw, run_parts
from emulation.commands.experiment_run import reporting
from ofan import cli
from reproduction.report.claims import CLAIMS
from reproduction.report.contents import figure
from reproduction.report.drawing import draw as draw_figure
from reproduction.report.statements import STATEMENTS
from reproduction.report.stored import MadeWith, stored
from sim.sweeps.model_version import model_version

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "pictures.json"
MODEL = "Model"
# Numbers by their subject; a maker writes a picture's file to its path.
Numbers = dict[str, Any]
Maker = Callable[[Path], Numbers]


def demo(path: Path) -> Numbers:
    """Draw README's first picture, as `ofan demo` does."""
    with tempfile.TemporaryDirectory() as folder, reporting() as reporter:
        done = run_parts(Path(folder), reporter)
        shutil.copy(draw(Path(folder), done), path)

    # The last part, a training step, is in the demo's table only.
    return {
        f"{file}, {outcome.scenario.policy}": [
            outcome.end_ps,
            max(port.max_queue_bytes or 0 for port in outcome.ports),
        ]
        for (file, _), part in zip(PARTS[:2], done, strict=False)
        for outcome in part.outcomes
    }


def queues(path: Path) -> Numbers:
    """Draw README's picture: the demo's queues alone."""
    from emulation.outcomes.plots import queues_figure

    with tempfile.TemporaryDirectory() as folder, reporting() as reporter:
        before, after, *_ = run_parts(Path(folder), reporter)

    queues_figure(before.outcomes, after.outcomes).savefig(path, dpi=150)
    return {
        f"{file}, {outcome.policy}": [max(map(max, outcome.samples.bytes))]
        for (file, _), part in zip(PARTS, (before, after), strict=False)
        for outcome in part.outcomes
    }


def your_own(path: Path) -> Numbers:
    """Draw the comparison of docs/your-own-load-balancer.md, by the page's program and command."""
    page = (ROOT / "docs" / "your-own-load-balancer.md").read_text(encoding="utf-8")
    program = re.search(r"^```p4\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert program
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "p4src").symlink_to(ROOT / "p4src")
        file = folder / "two_choices.p4"
        file.write_text(program[1], encoding="utf-8")
        output = folder / "results"
        arguments = ["emulate", "--program", str(file), "--policies", "ofan,jsq,rsq", "--json"]
        done = CliRunner().invoke(cli, [*arguments, "--output", str(output)])
        if done.exit_code:
            raise click.ClickException(done.output)

        shutil.copy(output / "comparison.png", path)

    text = done.stdout
    report = json.loads(text[text.index("{") :])
    return {
        f"{number}: {record['policy']}": [record["cct_ps"], record["max_queue_bytes"]]
        for number, record in enumerate(report["records"], start=1)
    }


def slow(path: Path) -> Numbers:
    """Draw the cost of a slow link, and write its table."""
    seeds = 10
    costs = slow_link.costs(seeds, 1 << 20)
    slow_link.draw(costs, path, seeds)
    slow_link.update(ROOT / "docs" / "faults.md", costs)
    return {cost.policy: [cost.before.tolist(), cost.planned.tolist()] for cost in costs}


def choice(path: Path) -> Numbers:
    """Draw the heat map of docs/choose.md, as `ofan choose` does."""
    answer = answers.answer(answers.FABRICS[answers.SHOWN])
    shutil.copy(answers.folder(answers.FABRICS[answers.SHOWN]) / "answer.png", path)
    return {
        row["name"]: [values["mean"] for values in row["percent"].values()]
        for row in answer["rows"]
    }


def of_report(folder: str, name: str, panel: str = "") -> Maker:
    """Return a function that draws a picture of a kept report from the report's data."""

    def make(path: Path) -> Numbers:
        data = ROOT / folder / "data"
        made = MadeWith.read(data)
        shown = figure(name)
        with tempfile.TemporaryDirectory() as drawn:
            pictures = draw_figure(
                shown, stored([shown], made, data)[name], Path(drawn), CLAIMS | STATEMENTS
            ).pictures
            shutil.copy(pictures[panel].with_suffix(".png"), path)

        # The numbers are the report's, which has a test of its own.
        return {"data": f"{folder}/data/{name}.parquet", "model": made.environment.get("model", "")}

    return make


PICTURES: Mapping[str, Maker] = {
    "docs/choose.png": choice,
    "docs/demo.png": demo,
    "docs/queues.png": queues,
    "docs/your-own-load-balancer.png": your_own,
    "docs/slow-link.png": slow,
    "docs/report/growth.png": of_report("docs/report", "growth"),
    "docs/report/overload.png": of_report("docs/report", "overload", "1 MB"),
    "docs/beyond/overview.png": of_report("docs/beyond", "overview"),
}
# These pictures depend on the machine, or show no run: how each is made.
OTHERS: Mapping[str, str] = {
    "docs/architecture.svg": "drawn by hand",
    "docs/bgp.png": "ofan bgp --all --figure FILE, with root and FRR, on a quiet machine",
    "docs/control-plane.png": "benchmarks/control_plane.py --figure FILE, on a quiet machine",
    "docs/networks.png": "benchmarks/networks.py --chart FILE, with root and Mininet",
    "docs/serve.png": "a browser's picture of `ofan serve demo_failure --message-bytes 2MiB"
    " --policies ofan`",
    "docs/simulator-speed.png": "benchmarks/simulator.py --chart FILE, on a quiet machine",
    "docs/switch.svg": "benchmarks/switch.py --veth --chart FILE, with root, on a quiet machine",
    "docs/watch.png": "a terminal's picture of `ofan watch demo_failure --message-bytes 2MiB`",
}


def model_of(path: Path) -> str:
    """Return the model that a PNG file names, nothing where it names none."""
    with Image.open(path) as picture:
        return str(picture.info.get(MODEL, ""))


def name_model(path: Path, model: str) -> None:
    """Write the model's name into a PNG file."""
    info = PngImagePlugin.PngInfo()
    info.add_text(MODEL, model)
    with Image.open(path) as picture:
        picture.load()
        picture.save(path, pnginfo=info, dpi=picture.info.get("dpi"), optimize=True)


def kept() -> dict[str, Any]:
    """Return the kept data of the pictures: for each its model and its numbers."""
    pictures: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    return pictures


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PICTURES)))
def main(names: Sequence[str]) -> None:
    """Draw pictures again, all of them by default."""
    for name in names or PICTURES:
        numbers = PICTURES[name](ROOT / name)
        model = numbers.get("model") or model_version()[:16]
        name_model(ROOT / name, model)
        KEPT.write_text(
            json.dumps(kept() | {name: {"model": model, "numbers": numbers}}, indent=1) + "\n",
            encoding="utf-8",
        )
        click.echo(name)


if __name__ == "__main__":
    main()
