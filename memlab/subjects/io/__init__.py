"""``lab.io``: exports, mirrors, backups, checks and restoring; ``lab.load``: whatever comes in."""
