"""Declarations: `program` goes through all of them, each other module types one kind."""
