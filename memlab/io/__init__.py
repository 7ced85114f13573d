"""Input and output: files, other frameworks, connections."""
