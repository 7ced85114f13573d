"""The golden record: what labs of every pack hold and answer, as digests that are compared after a change."""
