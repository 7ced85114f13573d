"""Subjects: memlab's own extensions, and the lab that offers them.

A subject is a folder with its verbs, decisions, stored tables and result classes. Its module
``declared`` lists what it adds to a lab. To add a subject, make a folder and add its name to
``EXTENSIONS``. Slots that packs may fill are in its module ``extension``, which is listed in
``PACK_DECLARATIONS``.
"""

EXTENSIONS = (
    "memlab.subjects.agent_verbs",
    "memlab.subjects.agents",
    "memlab.subjects.attribution",
    "memlab.subjects.context",
    "memlab.subjects.extraction",
    "memlab.subjects.clusters",
    "memlab.subjects.facts",
    "memlab.subjects.guard",
    "memlab.subjects.history",
    "memlab.subjects.index",
    "memlab.subjects.io",
    "memlab.subjects.linking",
    "memlab.subjects.modules",
    "memlab.subjects.observing",
    "memlab.subjects.programs",
    "memlab.subjects.purge",
    "memlab.subjects.questions",
    "memlab.subjects.retention",
    "memlab.subjects.rederiving",
    "memlab.subjects.review",
)
"""The subjects with declarations. Hooks are called in this order: a correction calls ``extraction`` first.
"""

PACK_DECLARATIONS = ("memlab.subjects.attribution.extension", "memlab.subjects.context.extension")
"""The modules whose ``EXTENSION`` declares slots; they are read before the first pack."""
