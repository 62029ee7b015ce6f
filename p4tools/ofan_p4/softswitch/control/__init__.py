"""A switch with a program: its pipeline, its tables in use, its packets and their traces."""
