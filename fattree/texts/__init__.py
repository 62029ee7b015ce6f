"""Experiments as text: reading and writing their files, and what is wrong or unused in them."""
