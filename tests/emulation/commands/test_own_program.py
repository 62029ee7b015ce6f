"""Bring your own: a user's program gets the groups and hosts it asks for, stands beside ours, and
is refused in one line.
"""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2

import ofan
import p4src
from controller.pipeline import Pipeline
from emulation.errors import ProgramError
from emulation.programs.own_program import ACTIONS, Loaded, check
from emulation.programs.switch_program import Size, load_program
from fattree.experiment.own import LIKE
from fattree.policies import POLICIES
from fattree.texts.experiment_file import load_experiment

pytestmark = pytest.mark.usefixtures("unrendered")
DEMO = Path(ofan.__file__).parent / "experiments" / "demo.toml"
FAST = ("--set", "collective.message_bytes=16KiB")
HEAD = """
#include "fabric.p4"
control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    apply { schedule.apply(meta.schedule, 0, standard_metadata); }
}
"""
SWITCH = '#include "switch.p4"\n'
READS = HEAD.replace("apply {", "apply { if (meta.FIELD) { mark_to_drop(standard_metadata); }")


def emulated(folder: Path, *options: str) -> dict[str, int]:
    """Return the CCT of everything that ran, in ps."""
    result = CliRunner().invoke(
        ofan.cli, ("emulate", *FAST, "--json", "--output", str(folder), *options)
    )
    assert result.exit_code == 0, result.output
    return {record["policy"]: record["cct_ps"] for record in json.loads(result.stdout)["records"]}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(("emulate", *arguments))
    assert stopped.value.code == 2
    return capsys.readouterr().err.strip()


def test_our_own_program_as_a_users_equals_ours(tmp_path: Path) -> None:
    results = emulated(
        tmp_path,
        "--program",
        str(p4src.path("ofan")),
        "--like",
        "ofan",
        "--policies",
        "ofan,jsq",
    )
    assert list(results) == ["ofan.p4", "ofan", "jsq"]
    assert results["ofan.p4"] == results["ofan"] != results["jsq"]


def test_a_program_is_like_simple_rr_unless_it_is_said(tmp_path: Path) -> None:
    results = emulated(
        tmp_path,
        str(DEMO),
        "--program",
        str(p4src.path("round_robin")),
        "--policies",
        "simple_rr,switch_pkt",
    )
    assert results["round_robin.p4"] == results["simple_rr"] != results["switch_pkt"]


def test_the_folder_has_the_program_and_its_name_in_every_table(tmp_path: Path) -> None:
    (tmp_path / "first.p4").write_text(HEAD + SWITCH)
    emulated(tmp_path / "out", "--program", str(tmp_path / "first.p4"))
    assert (tmp_path / "out" / "first.p4").read_text() == HEAD + SWITCH
    for name in ("results", "flows", "ports"):
        assert set(pl.read_parquet(tmp_path / "out" / f"{name}.parquet")["policy"]) == {"first.p4"}


def test_a_program_may_be_bmv2_json_with_its_p4info(tmp_path: Path) -> None:
    (tmp_path / "first.p4").write_text(HEAD + SWITCH)
    infos, include = tmp_path / "first.txtpb", str(p4src.INCLUDE)
    command = (
        "p4",
        "compile",
        str(tmp_path / "first.p4"),
        "-I",
        include,
        "-o",
        str(tmp_path / "first.json"),
    )
    CliRunner().invoke(
        ofan.cli, (*command, "--p4runtime-files", str(infos)), catch_exceptions=False
    )
    compiled = emulated(tmp_path / "1", "--program", str(tmp_path / "first.json"))
    assert list(compiled.values()) == list(
        emulated(tmp_path / "2", "--program", str(tmp_path / "first.p4")).values()
    )
    infos.unlink()
    shutil.rmtree(tmp_path / "2")
    assert emulated(tmp_path / "2", str(tmp_path / "1" / "experiment.toml")) == compiled


def test_our_includes_are_found_by_name_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("first.p4").write_text(HEAD + SWITCH)
    command = ("p4", "compile", "first.p4", "-I", "p4src/include", "-o", "first.json")
    CliRunner().invoke(ofan.cli, command, catch_exceptions=False)
    assert Path("first.json").stat().st_size > 10_000

    # A folder of that name here is the folder that is meant.
    Path("p4src/include").mkdir(parents=True)
    Path("p4src/include/fabric.p4").write_text("no P4")
    assert CliRunner().invoke(ofan.cli, command).exit_code != 0


def test_a_kept_experiment_runs_its_program_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine", "part.p4").write_text(HEAD)
    Path("mine", "first.p4").write_text('#include "part.p4"\n' + SWITCH)
    first = emulated(
        Path("1"), "--program", "mine/first.p4", "--like", "ofan", "--policies", "rsq,jsq"
    )
    shutil.rmtree("mine")
    again = emulated(Path("2"), "1/experiment.toml")
    assert list(again) == ["first.p4", "rsq", "jsq"]
    assert again == first
    kept = [load_experiment(Path(folder, "experiment.toml"), takes_program=True) for folder in "12"]
    assert [Path(experiment.program.file).name for experiment in kept if experiment.program] == [
        "first.p4",
        "first.p4",
    ]


def test_source_and_json_of_one_name_have_folders_of_their_own(tmp_path: Path) -> None:
    program = load_program(p4src.path("ecmp"), Size(2))
    suffixes = [
        Loaded(tmp_path / name, program, "flow").folder_suffix
        for name in ("first.p4", "first.json")
    ]
    assert suffixes == ["first", "first_json"]


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ('#include "fabric.p4"\n' + SWITCH, "mine.p4 has no control LoadBalancer"),
        (HEAD, 'mine.p4 lacks #include "switch.p4"'),
        (HEAD.replace('#include "fabric.p4"', "") + SWITCH, 'lacks #include "fabric.p4"'),
        (
            HEAD.replace("schedule.apply(meta.schedule, 0, standard_metadata);", "").replace(
                "Schedule() schedule;", ""
            )
            + SWITCH,
            "neither",
        ),
        (HEAD.replace("fabric.p4", "fabrik.p4") + SWITCH, "fabrik.p4"),
    ],
)
def test_what_a_program_lacks_is_said(
    source: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.p4").write_text(source)
    said = refused(capsys, "--program", str(tmp_path / "mine.p4"))
    assert complaint in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "no experiment given"),
        ((str(DEMO), "--like", "ofan"), "needs --program"),
        (("--program", "two_choices.p4", "--policies", "best"), "'best' is not one of"),
        (("--program", "two_choices.p4", "--like", "host_dr"), "'host_dr' is not one of"),
        (("--program", "two_choices.p4", "--set", "policies=ofan"), "use --like and --policies"),
        (("--program", "no such.p4"), "No such file"),
        (("--program", "two_choices.p4", "--policies", "jsq,ofan,jsq"), "jsq is given twice"),
    ],
)
def test_options_that_make_no_sense_are_one_line(
    options: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint in refused(capsys, *options).splitlines()[0]


def without(table: str, action: str = "") -> Pipeline:
    """Return Ofan's pipeline without a table, or with another name for an action."""
    info = text_format.Parse(p4src.p4info_path("ofan").read_text(), p4info_pb2.P4Info())
    for kind in info.actions if action else info.tables:
        name = kind.preamble.name.rpartition(".")[2]
        if name == (action or table):
            kind.preamble.name = "other"
    return Pipeline(info)


@pytest.mark.parametrize(
    ("table", "action"),
    [(table, action) for table in ("routes", "schedule", "ecn") for action in ACTIONS[table]],
)
def test_an_action_that_the_controller_needs_must_be_there(table: str, action: str) -> None:
    with pytest.raises(ProgramError, match=f"x.p4: its table {table} has no action {action}"):
        check("x.p4", without(table, action))


@pytest.mark.parametrize("table", ["routes", "schedule"])
def test_a_table_that_the_controller_needs_must_be_there(table: str) -> None:
    with pytest.raises(ProgramError, match=f"x.p4 has .*{table}"):
        check("x.p4", without(table))


def test_ours_pass_the_check() -> None:
    wrapping = {"host_dr", "mrc_srv6"}
    assert not wrapping & {*LIKE}
    for program in {row.program for row in POLICIES.values()} - wrapping:
        check(program, Pipeline.read(p4src.p4info_path(program)))


HEADER = "header tag_t { bit<8> tag; }\n#define EDGE_HEADER tag_t\n"
TIMER = "#define PROBE_INTERVAL_US 9\n"
HOOK = """control NAME(inout headers_t headers, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) { apply { BODY } }
"""


def hook(name: str, body: str = "") -> str:
    return HOOK.replace("NAME", name).replace("BODY", body)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (HEADER + HEAD + SWITCH, "defines EDGE_HEADER, but has no control Feedback"),
        (HEAD + hook("Feedback") + SWITCH, "but no EDGE_HEADER: write #define EDGE_HEADER before"),
        (HEAD + HEADER + hook("Feedback") + SWITCH, "define EDGE_HEADER before fabric.p4"),
        (
            "#define EACH_LINK\n" + HEAD + hook("EachLink") + SWITCH,
            "EACH_LINK needs an EDGE_HEADER",
        ),
        (
            "#define EACH_LINK\n" + HEADER + HEAD + hook("Feedback") + SWITCH,
            "defines EACH_LINK, but has no control EachLink",
        ),
        (
            HEADER + HEAD + hook("EachLink") + hook("Feedback") + SWITCH,
            "but no EACH_LINK: write #define EACH_LINK before",
        ),
        (
            HEADER + HEAD + hook("Feedback", "headers.edge_header.setInvalid();") + SWITCH,
            "takes it off at the destination's",
        ),
        (HEADER.replace("8", "4") + HEAD + hook("Feedback") + SWITCH, "needs whole bytes"),
        (
            "header a_t { bit<8> a; }\n#define BEFORE_IPV4 a_t\n#define BEFORE_IPV4_TYPE 0x88B7\n"
            + HEADER
            + HEAD
            + hook("Feedback")
            + SWITCH,
            "EDGE_HEADER cannot be combined with BEFORE_IPV4",
        ),
        (
            TIMER + HEADER + HEAD + hook("Feedback") + SWITCH,
            "defines PROBE_INTERVAL_US, but has no control Probe",
        ),
        (
            HEADER + HEAD + hook("Feedback") + hook("Probe") + SWITCH,
            "but no PROBE_INTERVAL_US: write #define PROBE_INTERVAL_US before",
        ),
        (
            HEADER + HEAD + TIMER + hook("Feedback") + hook("Probe") + SWITCH,
            "define PROBE_INTERVAL_US before fabric.p4",
        ),
        (TIMER + HEAD + hook("Probe") + SWITCH, "PROBE_INTERVAL_US needs an EDGE_HEADER"),
        (
            HEADER + READS.replace("FIELD", "is_probe") + hook("Feedback") + SWITCH,
            "uses is_probe, which exists with PROBE_INTERVAL_US alone: write #define PROBE_INTER",
        ),
        (
            READS.replace("FIELD", "edge != 0") + SWITCH,
            "uses edge, which exists with EDGE_HEADER alone: write #define EDGE_HEADER before",
        ),
        (
            TIMER.replace("9", "0") + HEADER + HEAD + hook("Feedback") + hook("Probe") + SWITCH,
            "PROBE_INTERVAL_US must be at least 1",
        ),
        (
            TIMER.replace("9", "soon") + HEADER + HEAD + hook("Feedback") + hook("Probe") + SWITCH,
            "PROBE_INTERVAL_US must be at least 1",
        ),
    ],
)
def test_mistakes_in_headers_between_edges_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    program = tmp_path / "tags.p4"
    program.write_text(text)
    assert complaint in refused(capsys, "--program", str(program), *FAST)


@pytest.mark.parametrize("interval_us", ["0", "9"])
def test_an_interval_of_the_command_line_needs_the_control(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], interval_us: str
) -> None:
    program = tmp_path / "tags.p4"
    program.write_text(HEADER + HEAD + hook("Feedback") + SWITCH)
    options = ("--program", str(program), "-D", f"PROBE_INTERVAL_US={interval_us}")
    text = refused(capsys, *options, *FAST)
    assert "defines PROBE_INTERVAL_US, but has no control Probe" in text


def test_an_interval_of_the_command_line_is_an_error_without_a_timer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "tags.p4"
    program.write_text(HEAD + SWITCH)
    options = ("--program", str(program), "-D", "PROBE_INTERVAL_US=9")
    assert "PROBE_INTERVAL_US needs an EDGE_HEADER" in refused(capsys, *options, *FAST)


def test_a_control_of_ones_own_may_be_called_as_a_hook_is(tmp_path: Path) -> None:
    applied = "Feedback() feedback;\n    apply { feedback.apply(headers, meta, standard_metadata); "
    head, start, rest = HEAD.partition("control")
    text = head + hook("Feedback") + start + rest.replace("apply { ", applied) + SWITCH
    program = tmp_path / "own.p4"
    program.write_text(text)
    assert emulated(tmp_path / "results", "--program", str(program))


def test_a_program_with_a_header_between_edges_runs_from_json(tmp_path: Path) -> None:
    program = tmp_path / "tags.p4"
    program.write_text(HEADER + HEAD + hook("Feedback") + SWITCH)
    options = ("-D", "MAX_UPLINKS=2", "-o", str(tmp_path / "tags.json"))
    info = ("--p4runtime-files", str(tmp_path / "tags.txtpb"))
    done = CliRunner().invoke(ofan.cli, ("p4", "compile", str(program), *options, *info))
    assert done.exit_code == 0, done.output
    files = (program, tmp_path / "tags.json")
    times = [
        list(emulated(tmp_path / file.suffix[1:], "--program", str(file)).values())
        for file in files
    ]
    assert times[0] == times[1]
