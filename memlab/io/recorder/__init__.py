"""Record the searches of any retriever, and read such logs and traces of other programs."""

from memlab.io.recorder._log import is_record, read_record
from memlab.io.recorder._recorder import RecordedHits, Recorder, record
from memlab.io.recorder._spans import read_spans

__all__ = ["RecordedHits", "Recorder", "is_record", "read_record", "read_spans", "record"]
