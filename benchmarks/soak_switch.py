"""Keep a switch busy with everything for minutes, and watch its memory.

    sudo python benchmarks/soak_switch.py                 one minute
    sudo python benchmarks/soak_switch.py --minutes 10 --json soak.json

It ends with status 1 where the resident memory has grown by more than the allowed share since the
warm-up.
"""

import itertools
import json
import tempfile
import threading
import time
from pathlib import Path
from queue import Queue
from typing import Any

import click

from benchmarks.rates.programs import frame, hello, inserts, pipeline
from benchmarks.rates.wires import OURS, enter_namespace, ip, running, through, veths

# isort: split
from p4.v1 import p4runtime_pb2

PROGRAM = "ofan"
BATCH = 50
WAIT_S = 20
NEW_PIPELINE_EVERY = 200


class Updates(threading.Thread):
    """A controller that never rests."""

    def __init__(self, stub: Any) -> None:
        super().__init__(daemon=True)
        self._stub = stub
        self.stopping = threading.Event()
        self.updates = self.pipelines = self.streams = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        """Work until `stopping` is set; an error ends the work."""
        try:
            for number in itertools.count():
                if self.stopping.is_set():
                    return

                self._round(number)
                time.sleep(0.02)
        except Exception as error:
            self.failure = error

    def _round(self, number: int) -> None:
        if number % NEW_PIPELINE_EVERY == NEW_PIPELINE_EVERY - 1:
            self._stub.SetForwardingPipelineConfig(pipeline(PROGRAM), timeout=WAIT_S)
            self._stub.Write(inserts(PROGRAM), timeout=WAIT_S)
            self.pipelines += 1

        for kind in (
            p4runtime_pb2.Update.INSERT,
            p4runtime_pb2.Update.MODIFY,
            p4runtime_pb2.Update.DELETE,
        ):
            self._stub.Write(_routes(kind, number), timeout=WAIT_S)
            self.updates += BATCH

        request = p4runtime_pb2.ReadRequest(device_id=1)
        request.entities.add().table_entry.SetInParent()
        list(self._stub.Read(request, timeout=WAIT_S))

        if number % 10 == 0:
            self._backup()

    def _backup(self) -> None:
        """Open a stream as a backup, be refused a packet-out, go away."""
        requests: Queue[Any] = Queue()
        responses = self._stub.StreamChannel(iter(requests.get, None), timeout=WAIT_S)
        message = hello()
        message.arbitration.election_id.low = 0
        requests.put(message)
        next(responses)
        requests.put(
            p4runtime_pb2.StreamMessageRequest(packet=p4runtime_pb2.PacketOut(payload=b"x" * 99))
        )
        next(responses)
        requests.put(None)
        responses.cancel()
        self.streams += 1


def _routes(kind: int, number: int) -> p4runtime_pb2.WriteRequest:
    """Return updates of fifty routes that no packet of the traffic takes."""
    template = inserts(PROGRAM).updates[0].entity
    request = p4runtime_pb2.WriteRequest(device_id=1)
    request.election_id.low = 1

    for i in range(BATCH):
        update = request.updates.add(type=kind, entity=template)
        update.entity.table_entry.match[0].lpm.value = bytes([11, number % 200, i, 1])

    return request


def resident_kib(pid: int) -> int:
    """Return the resident memory of a process."""
    return next(
        int(line.split()[1])
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )


def soak(minutes: float, warm_up_s: float) -> dict[str, Any]:
    """Run the soak; return the samples of memory and the counts of work done meanwhile."""
    frames = [frame(60, label) for label in range(256)]
    samples: list[tuple[float, int]] = []
    received = lost = 0

    with (
        tempfile.TemporaryDirectory() as folder,
        veths() as ends,
        running(OURS, Path(folder)) as (pid, stub),
    ):
        stub.SetForwardingPipelineConfig(pipeline(PROGRAM), timeout=WAIT_S)
        stub.Write(inserts(PROGRAM), timeout=WAIT_S)
        controller = Updates(stub)
        started = time.monotonic()
        samples.append((0.0, resident_kib(pid)))
        controller.start()

        while (elapsed := time.monotonic() - started) < minutes * 60 and controller.failure is None:
            more, missing = through(ends, frames, min(5.0, minutes * 60 - elapsed))
            received = received + more
            lost = lost + missing
            samples.append((time.monotonic() - started, resident_kib(pid)))

        controller.stopping.set()
        controller.join(WAIT_S)
        if controller.failure is not None:
            raise click.ClickException(f"the controller failed: {controller.failure}")

        samples.append((time.monotonic() - started, resident_kib(pid)))

    warm = next((size for time_s, size in samples if time_s >= warm_up_s), samples[-1][1])
    return {
        "minutes": minutes,
        "rss_kib": {
            "start": samples[0][1],
            "warm": warm,
            "end": samples[-1][1],
            "most": max(size for _, size in samples),
        },
        "growth": samples[-1][1] / warm - 1,
        "packets": received,
        "not_forwarded": lost,
        "updates": controller.updates,
        "pipelines": controller.pipelines,
        "streams": controller.streams,
        "samples": samples,
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--inside", is_flag=True, hidden=True)
@click.option("--minutes", type=float, default=1.0, show_default=True)
@click.option(
    "--warm-up",
    type=float,
    default=30.0,
    show_default=True,
    help="Seconds before the memory counts.",
)
@click.option(
    "--allowed",
    type=float,
    default=0.05,
    show_default=True,
    help="Share by which the memory may grow.",
)
@click.option(
    "--json",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write everything as JSON.",
)
def main(inside: bool, minutes: float, warm_up: float, allowed: float, file: Path | None) -> None:
    """Watch the memory of a busy switch (root: in a network namespace of its own)."""
    if not inside:
        enter_namespace()

    ip("link set lo up")
    report = soak(minutes, warm_up)
    if file is not None:
        file.write_text(json.dumps(report, indent=2) + "\n")

    print(json.dumps({name: value for name, value in report.items() if name != "samples"}))
    if report["growth"] > allowed:
        raise click.ClickException(f"the memory has grown by {report['growth']:.1%}")


if __name__ == "__main__":
    main()
