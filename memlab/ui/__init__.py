"""User interfaces: the command line, notebooks, widgets and the demonstration."""
