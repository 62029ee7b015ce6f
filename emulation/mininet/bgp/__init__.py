"""Routers that speak BGP (FRR), a network namespace each, on the links of a fabric."""
