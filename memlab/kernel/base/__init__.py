"""Tools for all packages: checked arguments, clocks, files, locks, displayed text."""
