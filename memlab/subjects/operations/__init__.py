"""``lab.upkeep.operations``: operations written down as text, proposed by memories, run with consent."""
