"""The virtual network: real programs, real agents and real bytes in virtual time, in one process."""
