"""`simple_switch_CLI`: scripts and commands for the runtime API, as people have them for BMv2."""
