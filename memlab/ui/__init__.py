"""What a person looks at: the command line, notebooks, widgets, the demonstration."""
