"""Typed tree to intermediate representation: calls are inlined, variables become fields."""
