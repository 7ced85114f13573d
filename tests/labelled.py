"""Six memories, and queries with the id of the memory that answers each."""

TEXTS = [
    "The user prefers tabs",
    "Deploys go out on Tuesdays",
    "Ana lives in Rome",
    "Tests run with pytest",
    "The staging host is called oak",
    "Bob maintains the parser",
]
ASKED = [
    ("tabs or spaces?", 1),
    ("when do deploys go out?", 2),
    ("where does Ana live?", 3),
    ("how do tests run?", 4),
    ("who maintains the parser?", 6),
]
