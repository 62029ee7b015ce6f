"""A sweep on workers that stand in another folder: a user's files travel by their content."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import ofan
from tests.test_docs_your_own import BY_PATH, PACKET, RULE

EXPERIMENT = """
name = "far"
[fabric]
k = 4
[packets]
header_bytes = 66
[collective]
message_bytes = "16KiB"
"""


@pytest.mark.slow
def test_program_rule_and_packets_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster

    head, _, rest = BY_PATH.partition("\n#define")
    mine, far = tmp_path / "mine", tmp_path / "far"
    for folder in (mine / "headers", far):
        folder.mkdir(parents=True)

    (mine / "headers" / "path.p4").write_text(head)
    (mine / "by_path.p4").write_text(f'#include "headers/path.p4"\n#define{rest}')
    (mine / "my_packet.py").write_text(PACKET)
    (mine / "fast_labels.py").write_text(RULE)
    (mine / "x.toml").write_text(EXPERIMENT)

    # Workers start where we stand.
    monkeypatch.chdir(far)
    arguments = ["sim", "sweep", "x.toml", "--json", "--program", "by_path.p4"]
    arguments += ["--like", "host_pkt", "--host-rule", "fast_labels.py"]
    arguments += ["--agent-packet", "my_packet.py"]
    rows = []
    with LocalCluster(n_workers=1, host="127.0.0.1", dashboard_address=None) as cluster:
        monkeypatch.chdir(mine)
        for store, more in (
            ("a.sqlite", ["--scheduler", cluster.scheduler_address]),
            ("b.sqlite", ["--jobs", "1"]),
        ):
            done = CliRunner().invoke(ofan.cli, [*arguments, "--store", store, *more])
            assert done.exit_code == 0, done.output
            rows.append([(row["policy"], row["cct_ps"]) for row in json.loads(done.stdout)["runs"]])

    assert rows[0] == rows[1] and ("by_path.p4 fast_labels.py") in dict(rows[0])
