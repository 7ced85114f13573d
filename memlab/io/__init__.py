"""What comes from outside and goes there: files, other frameworks, connections."""
