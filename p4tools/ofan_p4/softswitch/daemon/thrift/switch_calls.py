"""The runtime API's calls for the switch as a whole: ports, queues, clocks, a fresh start."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from ofan_p4.softswitch.base.units import PS_PER_US
from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.messages import CallError
from ofan_p4.softswitch.daemon.thrift.state import Runtime
from ofan_p4.softswitch.daemon.thrift.wire import I32, I64
from ofan_p4.softswitch.state.replication import Replication

# Clients know the methods by this module, and need no engine.
if TYPE_CHECKING:
    from ofan_p4.softswitch.daemon.dataplane import Dataplane
    from ofan_p4.softswitch.daemon.ports import Port
    from ofan_p4.softswitch.ports.queue import OutputQueue


class ManagementCalls(m.Part):
    """The switch as a whole."""

    has_context = False

    def __init__(self, runtime: Runtime, dataplane: Dataplane, thrift_port: int) -> None:
        self._runtime = runtime
        self._dataplane = dataplane
        self._thrift_port = thrift_port

    def bm_dev_mgr_show_ports(self) -> list[m.PortInfo]:
        return [
            m.PortInfo(number, port.name, port.is_up)
            for number, port in sorted(self._dataplane.ports.items())
        ]

    def bm_mgmt_get_info(self) -> m.SwitchInfo:
        return m.SwitchInfo(self._runtime.switch.device_id, self._thrift_port)

    def bm_reset_state(self) -> None:
        loaded = self._runtime.loaded
        for state in loaded.tables.values():
            # Entries that the program itself declares stay.
            for match, priority in [*state.table.entries]:
                if not state.table.entries[match, priority][2].is_const:
                    state.table.delete(match, priority)

            state.table.set_default(*state.table.initial_default[:2])

        for profile in loaded.pipeline.profiles:
            profile.clear()

        for value_set in loaded.pipeline.value_sets:
            value_set.replace(())

        self._reset_arrays()
        self._reset_direct()
        self._runtime.switch.replication = Replication()

    def _reset_arrays(self) -> None:
        pipeline = self._runtime.loaded.pipeline
        for registers in pipeline.registers:
            for i in range(len(registers)):
                registers[i] = 0

        for count in chain.from_iterable(pipeline.counters):
            count[:] = [0, 0]

        for meter in chain.from_iterable(pipeline.meters):
            meter.configure(None)
            meter.clear()

    def _reset_direct(self) -> None:
        for table in self._runtime.loaded.pipeline.tables:
            for entry in (*table, table.default):
                entry[2].packets = entry[2].octets = 0
                entry[2].meter = None

    def bm_get_config(self) -> str:
        return self._runtime.loaded.pipeline.source.decode()

    def bm_get_config_md5(self) -> bytes:
        # It identifies the program, and protects nothing.
        source = self._runtime.loaded.pipeline.source
        return hashlib.md5(source, usedforsecurity=False).digest()


class QueueCalls(m.Part):
    """Queues and clocks; 0 is BMv2's answer where all went well, and its rate without limit."""

    has_context = False

    def __init__(self, runtime: Runtime, dataplane: Dataplane) -> None:
        self._switch = runtime.switch
        self._dataplane = dataplane

    def set_egress_priority_queue_depth(self, port_num: I32, priority: I32, depth_pkts: I32) -> I32:
        return self._set_depth(depth_pkts, port_num, priority)

    def set_egress_queue_depth(self, port_num: I32, depth_pkts: I32) -> I32:
        return self._set_depth(depth_pkts, port_num)

    def set_all_egress_queue_depths(self, depth_pkts: I32) -> I32:
        return self._set_depth(depth_pkts)

    def set_egress_priority_queue_rate(self, port_num: I32, priority: I32, rate_pps: I64) -> I32:
        return self._set_rate(rate_pps, port_num, priority)

    def set_egress_queue_rate(self, port_num: I32, rate_pps: I64) -> I32:
        return self._set_rate(rate_pps, port_num)

    def set_all_egress_queue_rates(self, rate_pps: I64) -> I32:
        return self._set_rate(rate_pps)

    def get_time_elapsed_us(self) -> I64:
        return self._switch.clock() // PS_PER_US

    def get_time_since_epoch_us(self) -> I64:
        return time.time_ns() // 1000

    def _set_depth(self, packets: int, number: int | None = None, priority: int = -1) -> int:
        if packets < 0:
            raise CallError(f"a queue cannot hold {packets} packets")

        for _, queue in self._queues(number, priority):
            queue.set_depth_packets(packets)

        return 0

    def _set_rate(self, rate_pps: int, number: int | None = None, priority: int = -1) -> int:
        if rate_pps < 0:
            raise CallError(f"a queue cannot have a rate of {rate_pps} packets/s")

        for port, queue in self._queues(number, priority):
            queue.set_rate_pps(rate_pps or None)
            self._dataplane.rates_changed(port)

        return 0

    def _queues(self, number: int | None, priority: int) -> Iterator[tuple[Port, OutputQueue]]:
        ports = self._dataplane.ports
        if number is not None and number not in ports:
            raise CallError(f"the switch has no port {number}")

        for port in [*ports.values()] if number is None else [ports[number]]:
            if priority >= len(port.queues):
                raise CallError(f"port {port.number} has no queue {priority}")

            if port.gates:
                raise CallError(f"port {port.number} pauses (--pfc): its queues stay as they are")

            yield from (
                (port, queue) for index, queue in enumerate(port.queues) if priority in (-1, index)
            )
