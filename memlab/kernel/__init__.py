"""The core of memlab: language, journal, state, recall, and the daily verbs. It imports no subject."""
