"""A switch with a program, in process, and its primary controller."""

from __future__ import annotations

from collections.abc import Sequence

from ofan_p4.softswitch.base.errors import Code
from ofan_p4.softswitch.control.switch import Pending, Switch, Transmit
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError
from tests.emulation.softswitch.bmv2_json import Bmv2

# isort: split
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2


class Controller:
    """The primary controller of a bench's switch, in process."""

    def __init__(self, bench: Bench, p4info: p4info_pb2.P4Info | None = None) -> None:
        self.bench = bench
        self.p4info = p4info
        self.service = P4RuntimeService(bench.switch)
        self.received: list[p4runtime_pb2.StreamMessageResponse] = []
        self.stream = self.service.open_stream(self.received.append)
        self.become(1)

    def become(self, election_id: int) -> None:
        """Announce an election id."""
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = 1
        request.arbitration.election_id.low = election_id
        self.stream.receive(request)

    def set_pipeline(
        self,
        source: bytes,
        p4info: p4info_pb2.P4Info | None = None,
        action: int = 3,
        cookie: int = 0,
    ) -> None:
        """Send a SetForwardingPipelineConfig, VERIFY_AND_COMMIT by default."""
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1, action=action)
        request.election_id.low = 1
        request.config.p4_device_config = source
        request.config.p4info.CopyFrom(p4info or self.p4info or p4info_pb2.P4Info())
        if cookie:
            request.config.cookie.cookie = cookie
        self.service.set_pipeline(request)

    def write(self, *updates: tuple[str, p4runtime_pb2.Entity]) -> None:
        """Send updates, each a type name and an entity."""
        request = p4runtime_pb2.WriteRequest(device_id=1)
        request.election_id.low = 1
        for kind, entity in updates:
            request.updates.add(type=p4runtime_pb2.Update.Type.Value(kind), entity=entity)

        self.service.write(request)

    def code(self, kind: str, entity: p4runtime_pb2.Entity) -> str:
        """Return the name of the code that one update ends with."""
        try:
            self.write((kind, entity))
        except StatusError as error:
            [detail] = error.details
            return Code(detail.canonical_code).name

        return "OK"

    def read(self, *entities: p4runtime_pb2.Entity) -> list[p4runtime_pb2.Entity]:
        """Return the entities that a read selects."""
        responses = self.service.read(p4runtime_pb2.ReadRequest(device_id=1, entities=entities))
        return [entity for response in responses for entity in response.entities]


class Bench:
    """A switch with a program, without queues: packets leave at once."""

    def __init__(self, program: Bmv2 | bytes, ports: int = 8, cpu_port: int | None = None) -> None:
        self.now_ps = 0
        self.draws: list[tuple[int, int]] = []
        self.switch = Switch(
            1,
            clock=lambda: self.now_ps,
            random=self._random,
            ports=range(ports),
            cpu_port=cpu_port,
        )
        self.switch.load(program if isinstance(program, bytes) else program.source())

    def _random(self, low: int, high: int) -> int:
        self.draws.append((low, high))
        return high

    def send(self, frame: bytes, port: int = 0) -> list[tuple[int, bytes]]:
        """Return the (port, frame) pairs that a frame becomes."""
        return self.drain(self.switch.ingress(port, frame))

    def drain(self, pending: Sequence[Pending]) -> list[tuple[int, bytes]]:
        """Run egress for packets until nothing is left."""
        waiting = [*pending, *self.switch.take_requeued()]
        out: list[Transmit] = []
        for _ in range(100):
            if not waiting:
                break
            out += self.switch.egress(waiting.pop(0))
            waiting += self.switch.take_requeued()

        assert not waiting, "packets go round for ever"

        return [(sent.port, sent.frame) for sent in out]
