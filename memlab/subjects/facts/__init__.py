"""Facts as rows and as text, and the entities that facts are about."""
