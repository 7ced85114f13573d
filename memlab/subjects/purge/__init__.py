"""The subject purge: permanent removal of memories, its verification and its receipt."""
