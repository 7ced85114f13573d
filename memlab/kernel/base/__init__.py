"""What every package may use: checked arguments, clocks, files, locks, text for people."""
