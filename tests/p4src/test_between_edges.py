"""Programs without a header between edges compile as if the hooks of others did not exist."""

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
BLOCK = re.compile(
    r"^#(?:ifdef (?:HAS_)?EDGE_HEADER|if defined\((?:EDGE_HEADER|EACH_LINK)\).*)\n"
    r"(?:.*\n)*?#endif\n",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our includes without all that programs with a header between edges have."""
    folder = tmp_path_factory.mktemp("without") / "include"
    folder.mkdir()
    blocks = 0
    for path in p4src.INCLUDE.glob("*.p4"):
        # Lines keep their numbers, as names and places in the output have them.
        text = path.read_text(encoding="utf-8")
        hooks = list(BLOCK.finditer(text)) if path.name != "between_edges.p4" else []
        for block in hooks:
            text = text.replace(block[0], "\n" * block[0].count("\n"), 1)

        blocks += len(hooks)
        (folder / path.name).write_text(text, encoding="utf-8")

    assert blocks == 13
    return folder


@pytest.mark.parametrize("program", OTHERS, ids=lambda path: str(path.stem))
def test_programs_without_the_header_compile_to_the_same_json(program: Path, without: Path) -> None:
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
