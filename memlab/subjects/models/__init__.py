"""Language models behind servers that speak OpenAI's chat completions: asked within bounds, where a caller gives one.

What comes back is taken for hostile until it was read: it is bounded in size and time, and a secret in it is redacted.
Nothing here knows what is asked, or a lab.
"""

from memlab.subjects.models._http import Reply, Unreached, posted
from memlab.subjects.models._json import read_json_answer
from memlab.subjects.models._model import LanguageModel, Otherwise, Usage

__all__ = ["LanguageModel", "Otherwise", "Reply", "Unreached", "Usage", "posted", "read_json_answer"]
