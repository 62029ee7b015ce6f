"""BMv2's runtime API: the Thrift services that runtime_CLI, simple_switch_CLI and p4-utils call."""
