"""What a packet asks of the switch beyond being forwarded, and in what guise it comes round again.

Generated code makes and takes plain tuples, because naming their parts would cost every packet;
these classes are the same tuples for everybody else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# Values of standard_metadata.instance_type, as BMv2 has them (3, coalesced, never occurs there).
NORMAL = 0
INGRESS_CLONE = 1
EGRESS_CLONE = 2
RECIRCULATED = 4
REPLICATION = 5
RESUBMITTED = 6


class CloneRequest(NamedTuple):
    """A clone session, and the field list whose values the clone keeps."""

    session: int
    field_list: int


class IngressRequests(NamedTuple):
    """Requests of a packet in ingress: clone, digest, resubmission.

    What it does not want is None; the values are those of the field list or digest.
    """

    clone: CloneRequest | None
    clone_values: tuple[int, ...]
    digest: int | None
    digest_values: tuple[int, ...]
    resubmit: int | None
    resubmit_values: tuple[int, ...]


class EgressRequests(NamedTuple):
    """Requests of a packet in egress: clone, recirculation."""

    clone: CloneRequest | None
    clone_state: Any
    recirculate: int | None
    recirculate_values: tuple[int, ...]


class Resume(NamedTuple):
    """How a packet enters `ingress` another time: as what, with which field list preserved."""

    instance: int
    field_list: int
    values: tuple[int, ...]
