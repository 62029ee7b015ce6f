"""BMv2's simple_switch_grpc in the place of our switch: its command line, its queues, and what it can be asked.

Its rates are packets per second per queue, so ACKs have a queue of their own, which is faster by as much as they are
shorter. Rates and depths are set through its own tool over Thrift; links have a latency where the kernel offers netem;
counters are those of the interfaces, as it has none outside of programs.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from emulation.errors import NetworkError, StartError
from fabric.addressing import switch_name
from fabric.experiment import PS_PER_SECOND, Scenario

BMV2, TOOL = "simple_switch_grpc", "simple_switch_CLI"
FIRST_THRIFT_PORT = 9090
DATA_QUEUE, ACK_QUEUE = 0, 1
UNLIMITED_PACKETS = 1 << 20
TOOLS_AT_ONCE = 4
TOOL_SECONDS = 30


def command(switch: int, common: Sequence[str]) -> list[str]:
    """Return the command line: `common` are the options that our switch shares, those of the target behind `--`."""
    general = [BMV2, "--thrift-port", str(FIRST_THRIFT_PORT + switch), "--log-console", "-L", "warn"]
    return [*general, *common, "--priority-queues", "2"]


def refuse_without_bmv2() -> None:
    """Raise NetworkError where BMv2's programs are missing or do not start."""
    for program in (BMV2, TOOL):
        if shutil.which(program) is None:
            raise NetworkError(f"{program} is not on PATH: install BMv2 (docs/bmv2.md says how), or use --switch softswitch")
    done = subprocess.run([BMV2, "--version"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkError(f"{BMV2} does not start: {' | '.join((done.stderr or done.stdout).split(chr(10))[:2]).strip(' |')}")


def set_all_queues(scenario: Scenario) -> None:
    """Give the ports of every running switch the scenario's rates and depths; raises StartError, naming a switch."""
    with ThreadPoolExecutor(TOOLS_AT_ONCE) as pool:
        for _ in pool.map(lambda switch: set_queues(scenario, switch), range(scenario.tree.switches)):
            pass


def set_queues(scenario: Scenario, switch: int) -> None:
    """Give the ports of one switch the scenario's rates and depths; raises StartError with the tool's words."""
    script = "".join(f"{line}\n" for line in queue_settings(scenario, scenario.tree.ports(switch)))
    arguments = [TOOL, "--thrift-port", str(FIRST_THRIFT_PORT + switch)]
    try:
        done = subprocess.run(arguments, input=script, capture_output=True, text=True, check=False, timeout=TOOL_SECONDS)
    except subprocess.TimeoutExpired:
        raise StartError(f"{switch_name(scenario.tree, switch)}: {TOOL} has not set its queues in {TOOL_SECONDS} s") from None
    if done.returncode or "Invalid" in done.stdout or "Error" in done.stdout:
        said = " | ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        raise StartError(f"{switch_name(scenario.tree, switch)}: {TOOL} cannot set its queues: {said}")


def queue_settings(scenario: Scenario, ports: Sequence[int]) -> Iterator[str]:
    """Yield the tool's commands: for every port, how many packets a second leave each queue, and how many it holds."""
    sizes = {DATA_QUEUE: (scenario.slot_ps, scenario.data_bytes), ACK_QUEUE: (scenario.ack_slot_ps, scenario.ack_bytes)}
    for port in ports:
        for queue, (slot_ps, packet_bytes) in sizes.items():
            yield f"set_queue_rate {max(1, round(PS_PER_SECOND / slot_ps))} {port} {queue}"
            yield f"set_queue_depth {scenario.fabric.queue_bytes // packet_bytes or UNLIMITED_PACKETS} {port} {queue}"


def p4c(source: Path, includes: Sequence[Path], defines: dict[str, str], folder: Path) -> tuple[Path, Path]:
    """Compile with the reference compiler; return the JSON and the P4Info (text); raises NetworkError with its words."""
    program = shutil.which("p4c-bm2-ss")
    if program is None:
        raise NetworkError("p4c-bm2-ss is not on PATH: install p4c (docs/bmv2.md says how), or leave --compiler p4c out")
    wanted = folder / f"{source.stem}.json", folder / f"{source.stem}.txtpb"
    options = [*(f"-I{path}" for path in includes), *(f"-D{name}={value}" for name, value in defines.items())]
    outputs = ["-o", str(wanted[0]), "--p4runtime-files", str(wanted[1])]
    done = subprocess.run([program, "--std", "p4-16", *options, *outputs, str(source)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkError(f"p4c refuses {source}: {' | '.join(done.stderr.strip().splitlines()[:3])}")
    json.loads(wanted[0].read_bytes())
    return wanted
