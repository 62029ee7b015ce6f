"""The ground of the switch: a loaded program, arithmetic, hashes, units and errors."""
