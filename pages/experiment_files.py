"""Write experiments/paper: the scenarios of every figure as files for `ofan sim run` and `sweep`.

A figure's runs become as few files as its parts allow: one file if they are all combinations of a
few keys' values, load balancers and seeds. `python -m pages.experiment_files` writes them
again after a figure has changed; a test compares.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fattree.experiment.model import Experiment, Scenario
from reproduction.report.contents import FIGURES, figure
from reproduction.report.figure import Figure, Preset, dotted

FOLDER = Path(__file__).resolve().parents[1] / "experiments" / "paper"
PRESET = Preset("default")
# The work of a figure's measure beyond its scenarios, which the files cannot state.
NOTES = {"timeline": "The report takes the best of 100 seeds from each of these on."}
UNITS = (("MiB", 1 << 20), ("KiB", 1 << 10))
# Of a line of TOML; longer lists have an item a line.
WIDTH = 120
# An experiment must be whole before a sweep changes it, and FSDP needs a model.
NEEDED = "collective.model"

Values = dict[str, Any]


def files(shown: Figure) -> dict[str, str]:
    """Return the texts of a figure's files by name, none for a figure without runs."""
    parts: dict[str, list[Scenario]] = {}
    for scenario in shown.scenarios(PRESET):
        parts.setdefault(scenario.name, []).append(scenario)

    texts: dict[str, str] = {}
    for name, scenarios in parts.items():
        blocks = list(_blocks([_flat(scenario) for scenario in _distinct(scenarios)]))
        for number, block in enumerate(blocks, start=1):
            # Only parts that distinguish the files of a figure are in their names.
            part = [name] if len(parts) > 1 else []
            piece = [str(number)] if len(blocks) > 1 else []
            stem = "-".join([shown.name, *part, *piece])
            texts[f"{stem}.toml"] = _text(shown, stem, block)

    return texts


def write(folder: Path = FOLDER) -> None:
    """Write the files of all figures, and remove those that no figure has any more."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: text for shown in map(figure, FIGURES) for name, text in files(shown).items()}
    for path in folder.glob("*.toml"):
        if path.name not in texts:
            path.unlink()

    for name, text in texts.items():
        (folder / name).write_text(text)


def _distinct(scenarios: Sequence[Scenario]) -> list[Scenario]:
    return list({scenario.model_dump_json(): scenario for scenario in scenarios}.values())


def _flat(scenario: Scenario) -> Values:
    """Return a scenario's values by dotted keys, without its name."""
    return dict(dotted(scenario.model_dump(exclude={"name"})))


def _axes(rows: Sequence[Values]) -> dict[str, list[Any]]:
    """Return the values, in their order, of every key that varies."""
    axes = {key: _unique([row[key] for row in rows]) for key in rows[0]}
    return {key: values for key, values in axes.items() if len(values) > 1}


def _unique(values: Sequence[Any]) -> list[Any]:
    # By their text, since lists and tables have no hash; the first of each stays in its place.
    return list({repr(value): value for value in values}.values())


def _blocks(rows: Sequence[Values]) -> list[list[Values]]:
    """Split runs into groups each of which is all combinations of its keys' values."""
    axes = _axes(rows)
    if len(rows) == math.prod(map(len, axes.values())):
        return [list(rows)]

    # A file can only sweep whole grids. Every key is tried and the one kept that leaves the fewest
    # groups: all ways are gone through, which is cheap, as figures have a handful of keys.
    splits = []
    for key, values in axes.items():
        parts = _by_rest(rows, key)
        if len(parts) == 1:  # all values have the same runs otherwise, so each goes alone
            parts = [[row for row in rows if row[key] == value] for value in values]

        splits.append([block for part in parts for block in _blocks(part)])

    return min(splits, key=len)


def _by_rest(rows: Sequence[Values], key: str) -> list[list[Values]]:
    """Group runs by the values of a key, values together if their runs are otherwise the same."""
    runs: dict[str, list[Values]] = {}
    for row in rows:
        runs.setdefault(repr(row[key]), []).append(row)

    alike: dict[str, list[Values]] = {}
    for group in runs.values():
        rest = sorted(
            repr({name: value for name, value in row.items() if name != key}) for row in group
        )
        alike.setdefault(repr(rest), []).extend(group)

    return list(alike.values())


def _text(shown: Figure, name: str, rows: Sequence[Values]) -> str:
    """Return the TOML text of a block of runs: keys that differ from defaults, and the sweep."""
    axes = _axes(rows)
    policies = axes.pop("policy", [rows[0]["policy"]])
    seeds = axes.pop("seed", [rows[0]["seed"]])
    consecutive = seeds == list(range(seeds[0], seeds[0] + len(seeds)))

    # `seed` and `seeds` name a range; others, as of a figure with a seed for every hundred tries,
    # are a swept key like any other.
    if not consecutive:
        axes = {"seed": seeds, **axes}

    note = [f"# {NOTES[shown.name]}"] if shown.name in NOTES else []
    title = [f"# {shown.paper}: {shown.title}.", *note, f"# {_command(name, bool(axes))}"]
    count = [f"seeds = {len(seeds)}"] if consecutive and len(seeds) > 1 else []
    head = [
        f"name = {json.dumps(name)}",
        *_listed("policies", policies),
        f"seed = {seeds[0]}",
        *count,
    ]

    sweep = [
        "",
        "[sweep]",
        *(
            line
            for key, values in axes.items()
            for line in _listed(f'"{key}"', [_toml(key, v) for v in values], "")
        ),
    ]

    return "\n".join([*title, *head, *_tables(rows[0], axes), *(sweep if axes else [])]) + "\n"


def _command(name: str, sweeps: bool) -> str:
    return f"ofan sim {'sweep' if sweeps else 'run'} experiments/paper/{name}.toml"


def _listed(key: str, values: Sequence[str], quote: str = '"') -> list[str]:
    """Return a list, over several lines where it is long."""
    items = [f"{quote}{value}{quote}" for value in values]
    short = f"{key} = [{', '.join(items)}]"
    return (
        [short] if len(short) <= WIDTH else [f"{key} = [", *(f"    {item}," for item in items), "]"]
    )


def _tables(row: Values, axes: Mapping[str, Any]) -> list[str]:
    """Return the tables with the values that are not swept: important and unusual values."""
    usual = _flat(next(Experiment().scenarios()))
    lines = list[str]()
    table = ""

    for key, value in row.items():
        section, _, name = key.partition(".")
        if (
            not name
            or (key in axes and key != NEEDED)
            or (value == usual[key] and not _is_shown(key, row))
        ):
            continue

        if section != table:
            lines += ["", f"[{section}]"]
            table = section

        lines.append(f"{name} = {_toml(name, value)}")

    return lines


# The first questions about a run are answered even where the answer is the default.
def _is_shown(key: str, row: Values) -> bool:
    is_sized = row["collective.matrix"] != "fsdp"
    return key in ("fabric.k", "collective.matrix") or (
        key == "collective.message_bytes" and is_sized
    )


def _toml(key: str, value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value)
        case int() if key.endswith("message_bytes"):
            return next(
                (f'"{value // size}{unit}"' for unit, size in UNITS if value % size == 0),
                str(value),
            )
        case float() if value.is_integer():
            return f"{int(value)}"
        case dict():
            return (
                "{ "
                + ", ".join(
                    f"{name} = {_toml(name, item)}"
                    for name, item in value.items()
                    if item is not None
                )
                + " }"
            )
        case list() | tuple():
            return f"[{', '.join(_toml(key, item) for item in value)}]"
        case _:
            return str(value)


if __name__ == "__main__":
    write()
