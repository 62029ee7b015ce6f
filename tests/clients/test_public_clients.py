"""Public P4Runtime clients, each a process, over gRPC on loopback with the `softswitch` process."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import p4src
from ofan_p4.compiler import compile_file
from ofan_p4.compiler.backend.p4info_files import message_text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SHELL_PYTHON = ROOT / ".venv-shell" / "bin" / "python"
SWITCH = "from ofan_p4.softswitch.daemon.process import main; main()"
FRAME = "0a0b0c0d0e0f0102030405060806" + "00" * 46


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in (p4src.path("ofan"), HERE / "counted.p4"):
        program = compile_file(path, include_dirs=[p4src.INCLUDE])
        (tmp_path / f"{path.stem}.json").write_text(json.dumps(program.json))
        (tmp_path / f"{path.stem}.txtpb").write_text(message_text(program.p4info))
    return tmp_path


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    options = [
        "--no-p4",
        "--device-id",
        "1",
        "--cpu-port",
        "510",
        "--grpc-server-addr",
        "127.0.0.1:0",
    ]
    command = [sys.executable, "-c", SWITCH, *options]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            ready = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
            assert ready
            yield ready[0]
        finally:
            process.terminate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("python", "script"),
    [(Path(sys.executable), "with_finsy.py"), (SHELL_PYTHON, "with_p4runtime_shell.py")],
    ids=["finsy", "p4runtime-shell"],
)
def test_a_public_client_has_a_whole_session(
    python: Path, script: str, folder: Path, address: str
) -> None:
    if not python.exists():
        pytest.skip("p4runtime-shell is not installed: make setup")
    done = subprocess.run(
        [str(python), str(HERE / script), address],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen == {"read": 1, "after_delete": 0, "packet_in": FRAME, "counted": 1}
