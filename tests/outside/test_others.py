"""The count of others' files: right files, refused files, and wrong bytes."""

from pathlib import Path

from benchmarks.others import judged

RING = Path(__file__).parents[1] / "fattree" / "workloads"
MATRIX = "Nodes 4\nConnections 1\nTriggers 0\n0->1 id 1 start 0 size 5000\n"
TOPOLOGY = """Nodes 16\nTiers 2\nPodsize 16
Tier 0\nDownlink_speed_Gbps 100\nRadix_Up 4\nRadix_Down 4\nDownlink_Latency_ns 1000
Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000
"""


def test_right_files_are_counted_once(tmp_path: Path) -> None:
    for name in ("a.cm", "b.cm"):
        (tmp_path / name).write_text(MATRIX)

    (tmp_path / "a.topo").write_text(TOPOLOGY)
    (tmp_path / "ring.goal").write_bytes((RING / "ring.goal").read_bytes())
    (tmp_path / "ring.bin").write_bytes((RING / "ring.goal.bin").read_bytes())
    for rank in range(4):
        (tmp_path / f"step.{rank}.et").write_bytes((RING / f"step.{rank}.et").read_bytes())

    assert [line.partition(": ")[2] for line in judged([tmp_path])] == ["1 of 1"] * 5


def test_refusals_are_said_with_their_reasons(tmp_path: Path) -> None:
    for number in (2, 3):
        (tmp_path / f"{number}.cm").write_text(MATRIX.replace("tions 1", f"tions {number}"))

    lines = list(judged([tmp_path]))
    assert lines[:2] == [
        "connection matrices: 0 of 2",
        "    2 Connections is N, but the file has N",
    ]


def test_wrong_bytes_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "ring.bin").write_bytes((RING / "ring.goal.bin").read_bytes())
    text = (RING / "ring.goal").read_text()
    (tmp_path / "ring.goal").write_text(text.replace("send ", "send 1", 1))
    assert any("wrong: " in line and "ring.bin" in line for line in judged([tmp_path]))
