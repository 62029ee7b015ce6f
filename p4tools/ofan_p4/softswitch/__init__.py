"""A software switch that runs BMv2 JSON and speaks P4Runtime.

It needs nothing of the rest of this project: any P4 compiler that writes BMv2 JSON can feed it, and
any P4Runtime controller can drive it. `Switch` and `P4RuntimeService` run in the caller's process;
`daemon.process.main` is the daemon.
"""
