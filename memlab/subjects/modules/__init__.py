"""``lab.agents.modules``: the parts of a code base, found without running it, and how well a lab knows each."""
