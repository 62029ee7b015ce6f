"""The virtual network: real programs, agents and bytes in virtual time, in one process."""
