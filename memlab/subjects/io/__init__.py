"""``lab.io``: exports and mirrors; ``lab.load``: whatever comes in."""
