"""Review of a lab: deprecation, quarantine and release, gaps."""
