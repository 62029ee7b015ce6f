"""docs/your-own-load-balancer.md: all code on the page is run as it stands."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

import ofan
import p4src
from fattree.demand import traffic
from fattree.experiment.model import Fabric, Scenario
from fattree.routes.failures import timeline
from ofan_p4.compiler import compile_source
from sim.arrays.routing import Tables, phases
from tests.emulation.commands.conftest import leave_unrendered

ROOT = Path(ofan.__file__).parent
PAGE = (ROOT / "docs" / "your-own-load-balancer.md").read_text(encoding="utf-8")
SMALL = ("--set", "collective.message_bytes=16KiB")


class Block(NamedTuple):
    """A fenced block."""

    language: str
    text: str


def blocks() -> list[Block]:
    fences = re.finditer(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [Block(match[1], match[2]) for match in fences]


def commands() -> list[str]:
    return [
        line for block in blocks() if block.language == "sh" for line in block.text.splitlines()
    ]


COMMANDS = [command for command in commands() if " compare " not in command]
COMPARISONS = [command for command in commands() if " compare " in command]
RULE = next(block.text for block in blocks() if "def next_label" in block.text)
PACKET = next(block.text for block in blocks() if "def data_packet" in block.text)
BY_PATH = next(block.text for block in blocks() if "AFTER_UDP" in block.text)
FLOWLETS = next(block.text for block in blocks() if "last_seen_us" in block.text)
SHELL = """control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    DECLARED
    apply { APPLIED }
}
"""
EDGE_HEADER = """header path_t {
    bit<8> uplink;
    bit<8> congestion;
    bit<8> feedback_uplink;
    bit<8> feedback;
    bit<8> load;
}
#define EDGE_HEADER path_t
"""
PATH_QUEUES = next(block.text for block in blocks() if "control EachLink" in block.text)
SILENT_PATHS = next(block.text for block in blocks() if "control Probe" in block.text)
GAPS = next(block.text for block in blocks() if block.language == "toml")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder: the page's program and rule, and our experiments and includes."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("experiments", "p4src"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "two_choices.p4").write_text(
        next(block.text for block in blocks() if block.language == "p4")
    )
    (folder / "fast_labels.py").write_text(RULE)
    (folder / "my_packet.py").write_text(PACKET)
    (folder / "by_path.p4").write_text(BY_PATH)
    (folder / "flowlets.p4").write_text(FLOWLETS)
    (folder / "path_queues.p4").write_text(PATH_QUEUES)
    (folder / "silent_paths.p4").write_text(SILENT_PATHS)
    (folder / "gaps.toml").write_text(GAPS)
    return folder


def test_what_comes_with_ofan_is_what_the_page_shows() -> None:
    for name, text in {
        "fast_labels.py": RULE,
        "my_packet.py": PACKET,
        "by_path.p4": BY_PATH,
        "flowlets.p4": FLOWLETS,
        "path_queues.p4": PATH_QUEUES,
        "silent_paths.p4": SILENT_PATHS,
        "gaps.toml": GAPS,
    }.items():
        assert (ROOT / "experiments" / name).read_text(encoding="utf-8") == text


class Use(NamedTuple):
    """A row of the page's table of controls: the include, the declaration, the application."""

    includes: list[str]
    declared: str
    applied: str


def uses() -> list[Use]:
    rows = re.findall(r"^\| (`\w+\.p4`.*?) \| `(.+?)` \| `(.+?)` \|", PAGE, re.MULTILINE)
    return [Use(re.findall(r"\w+\.p4", row[0]), *row[1:]) for row in rows]


@pytest.mark.parametrize("use", uses(), ids=lambda use: use.declared.split()[0])
def test_each_printed_use_of_a_control_compiles(use: Use) -> None:
    names = dict.fromkeys(["fabric.p4", *use.includes])
    control = SHELL.replace("DECLARED", use.declared).replace("APPLIED", use.applied)
    included = "".join(f'#include "{name}"\n' for name in names)
    header = EDGE_HEADER if names.keys() & {"path_feedback.p4", "best_hop.p4"} else ""
    hooks = SHELL.replace("LoadBalancer", "Feedback").replace("DECLARED", "") if header else ""
    control += hooks.replace("APPLIED", "")
    text = f'{header}{included}{control}#include "switch.p4"\n'
    assert compile_source(text, "use.p4", (p4src.INCLUDE,), {"MAX_UPLINKS": "4"}).json


def test_the_page_has_all_controls_that_a_load_balancer_may_use() -> None:
    """All controls of p4src/include that switch.p4 does not apply by itself."""
    applied = (p4src.INCLUDE / "switch.p4").read_text() + (
        p4src.INCLUDE / "checksum.p4"
    ).read_text()
    sources = [path.read_text() for path in p4src.INCLUDE.glob("*.p4")]
    fences = {name for text in sources for name in re.findall(r"^control (\w+)\(", text, re.M)}
    offered = {name for name in fences if name not in applied and name != "SwitchDeparser"}
    assert {use.declared.partition("(")[0] for use in uses()} == offered


@pytest.mark.parametrize("k", [4, 8])
def test_groups_are_as_many_as_the_page_says(k: int) -> None:
    """An edge has a group for each edge, an agg one for each pod; Simple RR has a few."""
    for policy, edges, pods in (("ofan", k * k // 2, k), ("simple_rr", 1, 1)):
        scenario = Scenario(policy=policy, fabric=Fabric(k=k))
        events = timeline(scenario, traffic.flows(scenario))
        state = Tables(scenario).forwarding(next(iter(phases(scenario, events))))
        assert (state.edge_group.max() + 1, state.agg_group.max() + 1) == (edges, pods)

    assert f"the highest {32 * 32 // 2 - 1:,} at k = 32" in PAGE
    assert f"k = 64 ({64 * 64 // 2:,} edges)" in PAGE and 2 * 64 * 64 // 2 == 4096


def smaller(command: str) -> list[str]:
    """Return a command's words: the page's 8,192 hosts take half a minute, its seeds as long."""
    arguments = shlex.split(command)[1:]
    for option, value in (("--k", "4"), ("--seeds", "1")):
        if option in arguments:
            arguments[arguments.index(option) + 1] = value

    return arguments if arguments[0] == "p4" else [*arguments, *SMALL]


@pytest.fixture(scope="module")
def used(desk: Path) -> Path:
    """The reader's folder when all commands of the page have run in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(desk)
        for command in COMMANDS:
            result = CliRunner().invoke(ofan.cli, smaller(command))
            assert result.exit_code == 0, f"{command}\n{result.output}"
            # The page shows the first one's pictures.
            leave_unrendered(patch)

    return desk


def test_the_commands_of_the_page_run_and_leave_what_it_says(used: Path, desk: Path) -> None:
    folder = used / "results" / "demo_two_choices"
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "two_choices.p4").read_text() == (desk / "two_choices.p4").read_text()


def test_the_simulator_of_the_page_equals_its_virtual_network(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    fences = []
    for command in COMPARISONS:
        done = CliRunner().invoke(ofan.cli, [*shlex.split(command)[1:], *SMALL, "--json"])
        assert done.exit_code == 0, done.output
        answer = json.loads(done.stdout)
        fences.append({record["policy"] for record in answer["records"]})
        assert answer["differences"] == []
    assert fences == [
        {"two_choices.p4", "jsq"},
        {"fast_labels.py", "host_pkt"},
        {"by_path.p4"},
        {"path_queues.p4"},
        {"silent_paths.p4"},
    ]


def test_the_pauses_of_the_page_give_its_table(
    desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    (command,) = (line for line in COMMANDS if "sim sweep" in line)
    store = str(tmp_path / "gaps.sqlite")
    arguments = [*shlex.split(command)[1:], "--json", "--jobs", "1", "--store", store]
    done = CliRunner().invoke(ofan.cli, arguments)
    assert done.exit_code == 0, done.output

    for run in json.loads(done.stdout)["runs"]:
        figures = f"{run['cct_ps'] / 1e6:.2f} {100 * run['increase']:.2f}"
        rows = [line for line in PAGE.splitlines() if figures in " ".join(line.split())]
        assert rows, run
        if run["policy"] == "rsq":
            continue

        gap = run["defines.GAP_US"]
        assert any(row.split()[:2] == [gap, "flowlets.p4"] for row in rows), (gap, rows)


def test_the_python_of_the_page_runs(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(desk)
    (text,) = (block.text for block in blocks() if "simulated import" in block.text)
    small = text.replace('policy="simple_rr"', 'policy="simple_rr", fabric={"k": 2}')
    assert small != text
    exec(small, {})
    assert "'two_choices.p4'" in capsys.readouterr().out


def test_the_registers_of_the_page_are_what_is_shown(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    leave_unrendered(monkeypatch)
    command = "emulate --program path_queues.p4 --show-registers"
    done = CliRunner().invoke(ofan.cli, command.split())
    assert done.exit_code == 0, done.output
    rows = [line for line in PAGE.splitlines() if "feedback.longest_bytes" in line]
    assert len(rows) == 2
    for row in rows:
        assert row in done.stdout


def test_the_error_of_the_page_is_what_is_said(desk: Path) -> None:
    wrong = RULE.replace("took_ps < sender.srtt_ps", "took_ps / 2 < sender.srtt_ps")
    (desk / "wrong").mkdir()
    (desk / "wrong" / "fast_labels.py").write_text(wrong)
    (desk / "wrong" / "my_packet.py").write_text(PACKET.replace("flow.psn)", "flow.pns)"))
    hookless = PATH_QUEUES.replace("control Feedback", "control Forgotten")
    (desk / "wrong" / "path_queues.p4").write_text(hookless)
    (desk / "wrong" / "silent_paths.p4").write_text(SILENT_PATHS)
    probeless = SILENT_PATHS.replace("control Probe", "control Forgotten")
    (desk / "wrong" / "probeless").mkdir()
    (desk / "wrong" / "probeless" / "silent_paths.p4").write_text(probeless)
    slow = "--set fabric.rate_gbps=8 --set fabric.latency_ns=50000"
    for command in (
        "sim run --host-rule fast_labels.py",
        f"emulate {ROOT}/experiments/demo.toml --agent-packet my_packet.py",
        "emulate --program path_queues.p4",
        "emulate --program probeless/silent_paths.p4",
        f"emulate --program silent_paths.p4 {slow}",
    ):
        result = subprocess.run(
            [sys.executable, ROOT / "ofan.py", *command.split()],
            cwd=desk / "wrong",
            capture_output=True,
            text=True,
        )
        assert (result.returncode, result.stdout) == (2, "")
        # A compiler's error has its place above the reason.
        assert result.stderr.splitlines()[-1] in PAGE


def test_a_false_comparison_is_told_as_the_page_says(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk / "fixed").mkdir()
    (desk / "fixed" / "my_packet.py").write_text(PACKET.replace("sport=flow.label", "sport=49152"))
    monkeypatch.chdir(desk / "fixed")
    leave_unrendered(monkeypatch)
    (arguments,) = (shlex.split(line)[1:] for line in COMMANDS if line.endswith("host_pkt,ofan"))
    arguments[arguments.index("by_path.p4")] = "../by_path.p4"
    done = CliRunner().invoke(ofan.cli, [*arguments, *SMALL])
    said = [line for line in done.stderr.splitlines() if "fair" in line]
    assert done.exit_code == 0 and said and all(line in PAGE for line in said)
