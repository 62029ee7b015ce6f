"""Files that users bring, of this project and of others: read in bounds, refused in one line."""
