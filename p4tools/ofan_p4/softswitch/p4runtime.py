"""The public face of the P4Runtime server: `P4RuntimeService(switch)` and its error."""

from __future__ import annotations

from ofan_p4.softswitch.p4rt.service import P4RuntimeService, Stream
from ofan_p4.softswitch.p4rt.status import StatusError

__all__ = ["P4RuntimeService", "StatusError", "Stream"]
