"""Fields that follow from the text of a memory: what an edit of the text makes of them."""
