"""Packets to a port that does not exist are reported, on every network in one way."""

from collections.abc import Callable
from pathlib import Path

import pytest

import ofan

WORDS = ("--k", "2", "--message-bytes", "4096")
PROGRAM = """
#include "fabric.p4"
control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    apply {
        schedule.apply(meta.schedule, 0, standard_metadata);
        standard_metadata.egress_spec = EGRESS;
    }
}
#include "switch.p4"
"""


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)

    def run(egress: str, *arguments: str) -> str:
        # A name of its own: a process keeps its compiled programs by name.
        program = tmp_path / f"{egress}.p4"
        program.write_text(PROGRAM.replace("EGRESS", egress))
        with pytest.raises(SystemExit) as stopped:
            ofan.main((*arguments, "--program", str(program), *WORDS))

        assert stopped.value.code == 1
        return capsys.readouterr().err.splitlines()[-1]

    return run


@pytest.mark.parametrize("command", ["emulate", "sim run", "sim run --threads 2"])
def test_packets_to_no_port_are_counted_and_the_port_is_named(
    said: Callable[..., str], command: str
) -> None:
    line = said("9w400", *command.split())
    assert "2 flows are not complete" in line
    assert "packets to ports that do not exist (the highest: 400); no progress since" in line


def test_packets_that_a_program_drops_are_not_sent_anywhere(said: Callable[..., str]) -> None:
    line = said("DROP_PORT", "emulate")
    assert "2 flows are not complete" in line and "ports that do not exist" not in line
