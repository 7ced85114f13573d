"""The store, which keeps a lab's journal and its folded state in step; backups; views for one viewer."""
