"""Declarations: `program` goes through them, the others type one kind each."""
