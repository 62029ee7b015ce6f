"""Typed tree to the intermediate representation: everything inlined, variables become fields, calls
become steps.
"""
