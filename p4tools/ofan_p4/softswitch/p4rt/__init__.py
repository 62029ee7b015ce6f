"""P4Runtime on the `p4.v1` messages, without gRPC.

Numbers such as 9.1.1 in the comments of this package are sections of the P4Runtime specification
1.4; the tests in `tests/emulation/softswitch/conformance/` quote its rules.
"""
