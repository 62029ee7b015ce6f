"""`ofan doctor`: test which parts this machine can run, and print how to install the rest.

Kernel features are tested in a separate network namespace, which is deleted after the test: the
machine's network does not change. Only modules that need nothing but Python are imported, as
`ofan doctor` must also run where other packages are missing.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import click
from rich.text import Text

from emulation.remedies import REINSTALL, SHELL, SUDO
from fattree.records.csv_option import CsvOption
from fattree.records.tables import Folding, terminal, write_csv
from hostagent.isolation import clean_environment, shell_python, unsearched_folders

PROBE_SECONDS = 20
# The settings of each test, which hardly matter, and the purpose of the discipline.
QDISCS = {
    "tbf": ("rate 1mbit burst 10kb latency 1ms", "link rates on Mininet"),
    "htb": ("default 1", "link rates and priorities on Mininet"),
    "netem": ("delay 1ms", "link latency on Mininet; without netem the software delays packets"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One tested item: whether it is here, the result of the test, its purpose, its remedy."""

    name: str
    is_here: bool
    found: str
    purpose: str
    remedy: str


def run_quietly(*command: str) -> tuple[bool, str]:
    """Run a command; return whether it succeeded and the last line that it wrote."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
            env=clean_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)

    # The last line has the error, or the version.
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else ""


def in_own_namespace(script: str) -> tuple[bool, str]:
    """Run a shell script in a new network and user namespace, which needs no root."""
    # The folders of `ip` and `tc` may be missing in ordinary users' PATH.
    return run_quietly("unshare", "-rn", "sh", "-c", f"PATH=$PATH:/usr/sbin:/sbin; {script}")


def python() -> Finding:
    """Find the Python of this process."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "python",
        is_here=sys.version_info >= (3, 10),
        found=version,
        purpose="everything",
        remedy="install Python 3.10 or later",
    )


def root() -> Finding:
    """Find out whether the user is root."""
    user = os.geteuid()
    return Finding(
        "root",
        is_here=user == 0,
        found=f"uid {user}",
        purpose="Mininet, network namespaces",
        remedy=f"{SUDO} ...",
    )


def searched_folders() -> Finding:
    """Find out whether root's processes search all folders of PATH for programs."""
    left_out = unsearched_folders()
    return Finding(
        "folders of PATH",
        is_here=not left_out,
        found=f"not searched: {', '.join(left_out)}" if left_out else "all searched",
        purpose="programs that root runs",
        remedy="root searches folders that root alone can write: chown root and chmod go-w them,"
        " and the folders above them",
    )


def mininet() -> Finding:
    """Find Mininet and its helper."""
    # Mininet's Python needs its own helper program to enter a namespace.
    helper = shutil.which("mnexec")
    has_module = find_spec("mininet") is not None
    state = (
        "module and mnexec"
        if has_module and helper
        else "module only"
        if has_module
        else "no module"
    )

    remedy = f"Debian/Ubuntu: apt install mininet, then {REINSTALL}"
    return Finding(
        "mininet",
        is_here=has_module and helper is not None,
        found=state,
        purpose="--network mininet",
        remedy=remedy,
    )


def namespaces() -> Finding:
    """Try a veth pair in a namespace."""
    is_here, said = in_own_namespace("ip link add p0 type veth peer name p1")
    remedy = "run as root on a Linux kernel with CONFIG_NET_NS and CONFIG_VETH, with iproute2"
    return Finding(
        "veth and netns", is_here, found=said or "works", purpose="--network mininet", remedy=remedy
    )


def qdisc(kind: str) -> Finding:
    """Try a queueing discipline on a veth of a namespace."""
    settings, purpose = QDISCS[kind]
    is_here, said = in_own_namespace(
        f"ip link add p0 type veth peer name p1 && tc qdisc add dev p0 root {kind} {settings}"
    )
    remedy = (
        f"a kernel with sch_{kind} (Debian/Ubuntu: modprobe sch_{kind},"
        " or apt install linux-modules-extra-$(uname -r))"
    )

    return Finding(f"qdisc {kind}", is_here, found=said or "works", purpose=purpose, remedy=remedy)


def simple_switch_grpc() -> Finding:
    """Find BMv2's P4Runtime switch."""
    path = shutil.which("simple_switch_grpc")
    remedy = (
        "optional: package p4lang-bmv2 of build.opensuse.org's home:p4lang,"
        " or build p4lang/behavioral-model --with-pi"
    )
    return Finding(
        "simple_switch_grpc",
        is_here=path is not None,
        found=path or "not on PATH",
        purpose="--switch bmv2",
        remedy=remedy,
    )


def p4c() -> Finding:
    """Find the reference compiler."""
    # Some packages have only the driver `p4c`, which finds its back ends by itself.
    path = shutil.which("p4c-bm2-ss") or shutil.which("p4c")
    remedy = "optional: package p4lang-p4c of build.opensuse.org's home:p4lang, or build p4lang/p4c"
    return Finding(
        "p4c",
        is_here=path is not None,
        found=path or "not on PATH",
        purpose="--compiler p4c",
        remedy=remedy,
    )


def frr() -> Finding:
    """Find FRR's daemons."""
    path = Path("/usr/lib/frr/bgpd")
    return Finding(
        "frr",
        is_here=path.exists(),
        found=str(path) if path.exists() else f"no {path}",
        purpose="ofan bgp",
        remedy="optional: Debian/Ubuntu: apt install frr (its service may stay off)",
    )


def p4runtime_shell() -> Finding:
    """Find p4runtime-shell, which needs a separate environment."""
    # Import it: an existing environment may be incomplete.
    python = shell_python()
    is_here, said = (
        run_quietly(str(python), "-I", "-c", "import p4runtime_sh")
        if python
        else (False, "not installed by make setup")
    )

    state = str(python) if is_here else said
    return Finding("p4runtime-shell", is_here, state, purpose="ofan shell", remedy=SHELL)


# Before the qdiscs in the table: general needs; after them: optional tools.
PROBES: tuple[Callable[[], Finding], ...] = (python, root, searched_folders, mininet, namespaces)
TOOLS: tuple[Callable[[], Finding], ...] = (simple_switch_grpc, p4c, frr, p4runtime_shell)


def examine() -> Iterator[Finding]:
    """Yield all findings, in the order in which they are shown."""
    yield from (probe() for probe in PROBES)
    yield from map(qdisc, QDISCS)
    yield from (probe() for probe in TOOLS)


def networks(findings: list[Finding]) -> dict[str, bool]:
    """Return which networks this machine can run."""
    here = {finding.name for finding in findings if finding.is_here}
    return {
        "virtual": "python" in here,
        "sim": "python" in here,
        "mininet": here >= {"root", "mininet", "veth and netns"},
    }


def render(findings: list[Finding]) -> Folding:
    """Return the table of findings."""
    table = Folding("", "looked for", "found", "needed for", keys=2, texts=range(4), box=None)
    for finding in findings:
        mark = Text("yes", "green") if finding.is_here else Text("no", "yellow")
        table.add_row(mark, finding.name, finding.found, finding.purpose)

    return table


def advice(findings: list[Finding]) -> Iterator[str]:
    """Yield how to install missing items, a line each."""
    missing = [finding for finding in findings if not finding.is_here]
    if missing:
        yield ""
        yield "How to install what is missing:"

    yield from (f"  {finding.name}: {finding.remedy}" for finding in missing)


@click.command(epilog="\b\nExamples:\n  ofan doctor\n  ofan doctor --json | jq .networks")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option(
    "--csv",
    cls=CsvOption,
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the findings to a CSV file (-: stdout).",
)
def doctor(as_json: bool, csv: Path | None) -> None:
    """Say what this machine can run, and how to get what is missing."""
    findings = list(examine())
    runnable = networks(findings)
    if csv:
        write_csv([asdict(finding) for finding in findings], csv)

    if as_json:
        click.echo(
            json.dumps(
                {"networks": runnable, "findings": [asdict(finding) for finding in findings]},
                indent=2,
            )
        )

    if as_json or csv:
        return

    terminal().print(render(findings))
    # Not by rich, which breaks lines, and commands in them: the terminal itself does that.
    for line in advice(findings):
        click.echo(line)

    can_run = ", ".join(f"{name} {'yes' if can else 'no'}" for name, can in runnable.items())
    click.echo(f"\nnetworks: {can_run}")
