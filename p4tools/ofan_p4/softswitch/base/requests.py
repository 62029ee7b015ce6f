"""A packet's requests to the switch beyond forwarding, and its form when it comes round again.

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
    """A clone session, and the field list of values that the clone keeps."""

    session: int
    field_list: int


class IngressRequests(NamedTuple):
    """Requests of a packet in ingress: clone, digest, resubmission.

    Absent requests are None; the values are those of the field list or digest.
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
    """A packet's next entry into `ingress`: its instance type, and the field list preserved."""

    instance: int
    field_list: int
    values: tuple[int, ...]
