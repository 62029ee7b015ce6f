"""Files that come with Ofan, in a checkout and in a wheel: experiments, examples, P4 programs.

They are found by name from any folder: `demo`, `paper/ratio`, `two_choices.p4`, `p4src/ofan.p4`.
"""

import difflib
import json
import re
from collections.abc import Iterator
from itertools import islice, takewhile
from pathlib import Path

from fattree.errors import ExperimentError
from fattree.files.text_file import read_text

# The repository's `experiments` by a link, which setuptools follows: no top-level package has it.
EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"
PROGRAMS = Path(__file__).resolve().parents[2] / "p4src"
FOLDERS = {"experiments": EXPERIMENTS, "p4src": PROGRAMS}
SUFFIX = ".toml"
PAPER = "paper/"
# Files that experiments need beside them, and files to leave out.
DATA = (".pyc", ".parquet")
# A mistyped name is looked for among so many files of the current folder.
MOST_LISTED = 1000
# A share of letters in common from which names count as alike (`difflib`).
ALIKE = 0.7
COMMENT = re.compile("#(?!include)|//")
SENTENCE_END = re.compile(r"(?<!fig)\. (?=[A-Z0-9`]|ofan )")


def names() -> list[str]:
    """Return all names, experiments without their suffix: the paper's figures last."""
    files = [
        path.relative_to(EXPERIMENTS).as_posix().removesuffix(SUFFIX)
        for path in EXPERIMENTS.rglob("*.*")
        if path.suffix not in DATA
    ]
    return sorted(files, key=lambda name: (name.startswith(PAPER), "." in name, name))


def shipped(name: str | Path) -> Path | None:
    """Return the file of ours that a name stands for, None where there is none."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        return None

    return next((file for file in _candidates(path) if file.is_file()), None)


def _candidates(path: Path) -> Iterator[Path]:
    # All documentation writes `experiments/demo.toml`, also for users without a checkout.
    folder = FOLDERS.get(path.parts[0]) if len(path.parts) > 1 else None
    inside = Path(*path.parts[1:]) if folder else path
    within = folder or EXPERIMENTS

    yield within / inside
    if path.name:
        yield within / inside.with_name(f"{inside.name}{SUFFIX}")


def found(path: Path) -> Path:
    """Return a file as it is named, or ours of that name if there is none.

    Raises ExperimentError.
    """
    # A folder is refused where it is read; whatever else it is (a pipe, a device) is the user's.
    return path if path.exists() and not path.is_dir() else ours(path)


def ours(name: str | Path) -> Path:
    """Return the file of ours that a name stands for; raises ExperimentError."""
    path = Path(name)
    file = shipped(path)
    if file is None and path.is_dir():
        raise ExperimentError(f"{str(path)!r}: a folder, where a file is wanted")
    if file is None:
        raise ExperimentError(f"{str(path)!r}: No such file{_hint(path)}")

    return file


def _hint(path: Path) -> str:
    # A path with a folder does not mean a file of ours.
    if len(path.parts) > 1 and path.parts[0] not in FOLDERS:
        return ""

    here = [entry.name for entry in islice(Path().iterdir(), MOST_LISTED) if entry.suffix]
    close = difflib.get_close_matches(str(path), [*here, *names()], n=1, cutoff=ALIKE)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f", and nothing of that name comes with Ofan{meant}: ofan experiments list"


def title(name: str) -> str:
    """Return a file's title: the first sentence of the comment that it begins with."""
    path = shipped(name)
    if path is None:
        return ""

    text = read_text(path, ExperimentError)
    if path.suffix == ".json":
        return f"A published model's configuration, of type {json.loads(text)['model_type']}."

    if text.startswith('"""'):
        return text.splitlines()[0].strip('"')

    # Commands are indented in comments.
    lines = (line.lstrip("#/") for line in takewhile(COMMENT.match, text.splitlines()))
    said = " ".join(line.strip() for line in takewhile(lambda line: line[:3].strip(), lines))
    return SENTENCE_END.split(said)[0].rstrip(".:") + "."
