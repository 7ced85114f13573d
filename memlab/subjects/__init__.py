"""Subjects: extensions of memlab's own, and the lab that offers them.

A subject is a folder: what a person calls, what is decided, what is kept of it and what is returned lie together. Its
module ``declared`` says what it adds to a lab. A new subject is a folder and its name in ``EXTENSIONS``. If packs may
decide something of it, its slots are in its module ``extension``, named in ``PACK_DECLARATIONS``.
"""

EXTENSIONS = (
    "memlab.subjects.agent_verbs",
    "memlab.subjects.agents",
    "memlab.subjects.attribution",
    "memlab.subjects.context",
    "memlab.subjects.extraction",
    "memlab.subjects.clusters",
    "memlab.subjects.facts",
    "memlab.subjects.history",
    "memlab.subjects.index",
    "memlab.subjects.io",
    "memlab.subjects.linking",
    "memlab.subjects.modules",
    "memlab.subjects.observing",
    "memlab.subjects.programs",
    "memlab.subjects.purge",
    "memlab.subjects.retention",
    "memlab.subjects.rederiving",
    "memlab.subjects.review",
)
"""The subjects that declare something. Hooks are called in this order: a correction asks ``extraction`` first."""

PACK_DECLARATIONS = ("memlab.subjects.attribution.extension", "memlab.subjects.context.extension")
"""The modules whose ``EXTENSION`` declares slots, read before the first pack."""
