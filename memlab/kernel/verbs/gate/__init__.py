"""Who may ask and write, and whether memory is on: what every verb checks before it reads or writes."""
