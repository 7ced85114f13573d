"""What every package may use: checked arguments, clocks, files, text and figures for notebooks."""
