"""What a reader must know: language, journal, state, recall, and the verbs of daily use. It knows no subject."""
