"""One folder for each subject: what a person calls, what is decided, what is kept of it, and what is returned."""
