"""What use changes of memories and their edges, as the pack decides."""
