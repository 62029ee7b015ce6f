"""The arguments of both functions, the metadata that they become, and the results."""

from __future__ import annotations

from collections.abc import Mapping

from ofan_p4.softswitch.base.units import PS_PER_US
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.nodes import Argument, Expression, Quotient

PORT = Argument(names.PORT)
PACKET_LENGTH = Argument(names.PACKET_LENGTH)
NOW = Argument(names.NOW)
PRIORITY = Argument(names.PRIORITY)
INSTANCE = Argument(names.INSTANCE)
RID = Argument(names.RID)
ENQ_US = Argument(names.ENQ_US)
ENQ_DEPTH = Argument(names.ENQ_DEPTH)
DELTA_US = Argument(names.DELTA_US)
DEQ_DEPTH = Argument(names.DEQ_DEPTH)
# Python counts it first (`Measure`).
SIZE = Argument(names.SIZE)

# Timestamps of v1model are microseconds since the switch started.
US = Quotient(NOW, PS_PER_US)

INGRESS_ARGUMENTS = (names.DATA, names.PORT, names.PACKET_LENGTH, names.NOW, names.RESUME)
EGRESS_NUMBERS = (
    PORT,
    PRIORITY,
    PACKET_LENGTH,
    INSTANCE,
    RID,
    NOW,
    ENQ_US,
    ENQ_DEPTH,
    DELTA_US,
    DEQ_DEPTH,
)
EGRESS_ARGUMENTS = (names.STATE, *(argument.name for argument in EGRESS_NUMBERS))

# Ingress's decisions for the switch, in the order in which it returns them.
OUTCOME = (
    "standard_metadata.egress_spec",
    "intrinsic_metadata.mcast_grp",
    "intrinsic_metadata.priority",
)
INGRESS_METADATA: Mapping[str, Expression] = {
    "standard_metadata.ingress_port": PORT,
    "standard_metadata.packet_length": PACKET_LENGTH,
    "intrinsic_metadata.ingress_global_timestamp": US,
}
EGRESS_METADATA: Mapping[str, Expression] = {
    "standard_metadata.egress_port": PORT,
    "standard_metadata.packet_length": PACKET_LENGTH,
    "standard_metadata.instance_type": INSTANCE,
    "intrinsic_metadata.egress_rid": RID,
    "intrinsic_metadata.egress_global_timestamp": US,
    "queueing_metadata.enq_timestamp": ENQ_US,
    "queueing_metadata.enq_qdepth": ENQ_DEPTH,
    "queueing_metadata.deq_timedelta": DELTA_US,
    "queueing_metadata.deq_qdepth": DEQ_DEPTH,
    "queueing_metadata.qid": PRIORITY,
    "intrinsic_metadata.priority": PRIORITY,
}
