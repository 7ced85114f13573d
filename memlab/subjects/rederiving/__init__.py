"""Fields that are derived from the text of a memory, and their update after an edit."""
