"""The subject modules: the parts of a code base, and how well a lab knows each."""
