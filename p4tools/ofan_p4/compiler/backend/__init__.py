"""Intermediate representation to BMv2 JSON and to P4Info."""
