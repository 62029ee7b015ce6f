"""The reference compiler in the place of ours, where it is installed."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from emulation.errors import NetworkError

P4C = "p4c-bm2-ss"
# p4c writes one error over several lines, source and caret included: the first say which.
MOST_LINES = 3


def p4c(
    source: Path, includes: Sequence[Path], defines: dict[str, str], folder: Path
) -> tuple[Path, Path]:
    """Compile into `folder`; return the BMv2 JSON and the P4Info (text).

    Raises NetworkError with p4c's words.
    """
    program = shutil.which(P4C)
    if program is None:
        raise NetworkError(
            f"{P4C} is not on PATH: install p4c (docs/bmv2.md says how),"
            " or leave --compiler p4c out"
        )

    bmv2_json = folder / f"{source.stem}.json"
    p4info = folder / f"{source.stem}.txtpb"
    options = [
        *(f"-I{path}" for path in includes),
        *(f"-D{name}={value}" for name, value in defines.items()),
    ]

    outputs = ["-o", str(bmv2_json), "--p4runtime-files", str(p4info)]
    done = subprocess.run(
        [program, "--std", "p4-16", *options, *outputs, str(source)],
        capture_output=True,
        text=True,
        check=False,
    )

    if done.returncode:
        errors = done.stderr.strip().splitlines()[:MOST_LINES]
        raise NetworkError(f"p4c refuses {source}: {' | '.join(errors)}")

    return bmv2_json, p4info
