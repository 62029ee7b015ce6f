"""Files of another kind than their name: none is waited for or quoted."""

import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fattree.demand.matrix_flows import read_connection_matrix
from fattree.errors import ExperimentError, FabricError
from fattree.experiment.fabric import Fabric
from fattree.files.text_file import read_bytes
from fattree.generators.chakra_file import read_chakra
from fattree.generators.goal_file import read_goal
from fattree.generators.model import read_model
from fattree.shape.topology import FatTree
from fattree.texts.experiment_file import load_experiment, parse_experiment
from ofan_p4 import bounded

SECRET = "root:$6$hash$secret:19500:0:99999:7:::\nsecret second line\n"


def goal(path: str) -> object:
    return read_goal(read_bytes(path, FabricError), path)


def topology(path: str) -> object:
    return Fabric.model_validate({"topology": path})


def matrix(path: str) -> object:
    return read_connection_matrix(path, FatTree(4), 4096, "ps")


def workload(path: str) -> object:
    text = f"[collective]\nmatrix = 'workload'\nfile = '{path}'\n"
    return parse_experiment(text, "x.toml")


def trace(path: str) -> object:
    return read_chakra(path.removesuffix(".0.et"))


READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "an experiment": ("x.toml", load_experiment),
    "a topology": ("x.topo", topology),
    "a matrix": ("x.cm", matrix),
    "a workload": ("x.parquet", workload),
    "a schedule": ("x.goal", goal),
    "a trace": ("x.0.et", trace),
    "a model": ("config.json", read_model),
}


@pytest.mark.parametrize("kind", READERS)
def test_a_pipe_is_refused_and_not_waited_for(kind: str, tmp_path: Path) -> None:
    name, read = READERS[kind]
    os.mkfifo(tmp_path / name)
    with pytest.raises((FabricError, ValueError), match="cannot be read: not a regular file"):
        read(str(tmp_path / name))


def test_a_program_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.p4")
    with pytest.raises(OSError, match="not a regular file"):
        bounded.read_bytes(tmp_path / "x.p4")


@pytest.mark.parametrize("content", [SECRET, json.dumps({"auths": {"here": "secret"}})])
@pytest.mark.parametrize("kind", READERS)
def test_nothing_is_quoted_of_a_file_of_another_kind(
    kind: str, content: str, tmp_path: Path
) -> None:
    name, read = READERS[kind]
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises((FabricError, ValueError)) as caught:
        read(str(path))

    message = str(caught.value)
    assert "secret" not in message and "root" not in message.replace(str(tmp_path), "")
    assert name.partition(".")[0] in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a" + ".a" * 28_000 + " = 1\n", "x.toml:1: a key of more than 8 parts"),
        ("seed = 1\n[a" + ' . "b"' * 28_000 + "]\n", "x.toml:2: a key of more than 8 parts"),
        ("[fabric]\nk" + ".'k'" * 33 + " = 4\n", "x.toml:2: a key of more than 8 parts"),
        ("# x\n" * (1 << 20) + "seed = 1\n", "x.toml: has more than 2 MiB of TOML"),
    ],
)
def test_a_text_that_would_take_gigabytes_is_refused_at_once(text: str, message: str) -> None:
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(ExperimentError, match=f"^{message}"):
        parse_experiment(text, "x.toml")

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    assert time.process_time() - begun < 2


def test_a_value_of_the_command_line_is_refused_likewise() -> None:
    with pytest.raises(ExperimentError, match="failures:1: a key of more than 8 parts"):
        parse_experiment("seed = 1", "x.toml", ["failures={a" + ".a" * 40 + "=1}"])


@pytest.mark.parametrize(
    "text",
    [
        "# 1.2.3.4.5. " + ". ".join("words" for _ in range(20)) + "\nseed = 2",
        "label = '" + "a.b" * 60 + "'\nseed = 2",
        "[collective]\nmatrix = 'pairs'\npairs = [" + "[0, 1], " * 10_000 + "]",
        'seed = 2\nlabel = "' + "x" * 199 + '"',
    ],
)
def test_what_is_no_long_key_is_read(text: str) -> None:
    parse_experiment(text, "x.toml")


def test_long_words_take_no_time_to_look_through() -> None:
    begun = time.process_time()
    with pytest.raises(ExperimentError):
        parse_experiment("a" * (2 << 20), "x.toml")
    with pytest.raises(ExperimentError):
        parse_experiment('"a' * (1 << 20), "x.toml")

    assert time.process_time() - begun < 8


@pytest.mark.parametrize("size", [9, 10, 11])
def test_a_file_may_have_as_many_bytes_as_its_limit(size: int, tmp_path: Path) -> None:
    file = tmp_path / "some"
    file.write_bytes(bytes(size))
    if size <= 10:
        assert read_bytes(file, FabricError, limit=10) == bounded.read_bytes(file, limit=10)
        return

    with pytest.raises(FabricError, match="has more than"):
        read_bytes(file, FabricError, limit=10)
    with pytest.raises(bounded.TooLargeError):
        bounded.read_bytes(file, limit=10)
