"""The journal and the state that is folded from it, kept in step; backups; views."""
