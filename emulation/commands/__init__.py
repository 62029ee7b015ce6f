"""The commands of `ofan` that run experiments and look at captures and machines."""
