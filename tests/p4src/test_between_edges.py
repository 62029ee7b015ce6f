"""Programs without a header between edges, or without probes, compile as if those did not exist."""

import json
import re
from pathlib import Path

import pytest

import p4src
from fattree.texts.shipped import EXPERIMENTS
from ofan_p4.compiler import compile_file

GALLERY = sorted((EXPERIMENTS / "gallery").glob("*.p4"))
OTHERS = [
    path
    for path in (*map(p4src.path, p4src.programs()), EXPERIMENTS / "two_choices.p4", *GALLERY)
    if "EDGE_HEADER" not in path.read_text(encoding="utf-8")
]
# Programs with a header, and without probes.
HEADED = [
    path
    for path in (EXPERIMENTS / "path_queues.p4", *GALLERY)
    if "EDGE_HEADER" in (text := path.read_text(encoding="utf-8"))
    and "PROBE_INTERVAL_US" not in text
]
PROBES = r"ifdef HAS_PROBES|ifdef PROBE_INTERVAL_US|if defined\(PROBE_INTERVAL_US\).*"
HEADERS = (
    r"ifdef (?:HAS_)?EDGE_HEADER|if defined\((?:HAS_)?EDGE_HEADER\).*|if defined\(EACH_LINK\).*"
)


def cut(folder: Path, conditions: str, spared: str) -> int:
    """Write our includes into a folder, without their blocks under conditions; return how many."""
    block = re.compile(rf"^#(?:{conditions})\n(?:.*\n)*?#endif\n", re.MULTILINE)
    folder.mkdir()
    count = 0
    for path in p4src.INCLUDE.glob("*.p4"):
        # Lines keep their numbers, as names and places in the output have them.
        text = path.read_text(encoding="utf-8")
        hooks = list(block.finditer(text)) if path.name != spared else []
        for hook in hooks:
            text = text.replace(hook[0], "\n" * hook[0].count("\n"), 1)

        count += len(hooks)
        (folder / path.name).write_text(text, encoding="utf-8")

    return count


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our includes without all that programs with a header between edges have."""
    folder = tmp_path_factory.mktemp("without") / "include"
    assert cut(folder, f"{PROBES}|{HEADERS}", spared="between_edges.p4") == 13 + 11
    return folder


@pytest.fixture(scope="module")
def probeless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our includes without all that programs with probes have."""
    folder = tmp_path_factory.mktemp("probeless") / "include"
    assert cut(folder, PROBES, spared="") == 12
    return folder


@pytest.mark.parametrize("program", OTHERS, ids=lambda path: str(path.stem))
def test_programs_without_the_header_compile_to_the_same_json(program: Path, without: Path) -> None:
    assert_same(program, without)


@pytest.mark.parametrize("program", HEADED, ids=lambda path: str(path.stem))
def test_programs_without_probes_compile_to_the_same_json(program: Path, probeless: Path) -> None:
    assert_same(program, probeless)


def assert_same(program: Path, without: Path) -> None:
    """Compile a program with our includes and with others, to the same JSON."""
    defines = {"MAX_UPLINKS": "4"}
    source = without.parent / program.name
    source.write_bytes(program.read_bytes())
    ours = compile_file(program, (p4src.INCLUDE, p4src.FOLDER), defines)
    bare = compile_file(source, (without, without.parent), defines)

    assert ours.p4info == bare.p4info
    assert as_text(ours.json) == as_text(bare.json)


def as_text(program: object) -> str:
    """Return BMv2 JSON as text, with files named without their folders."""
    return re.sub(r'"(filename|program)": "[^"]*?([^/"]*)"', r'"\1": "\2"', json.dumps(program))
