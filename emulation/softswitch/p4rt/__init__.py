"""P4Runtime on the `p4.v1` messages, without gRPC."""
