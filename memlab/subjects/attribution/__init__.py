"""``lab.attribute``: which of the memories that a recall showed an answer was made of, without anybody's judgement."""
