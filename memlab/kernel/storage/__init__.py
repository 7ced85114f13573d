"""The store, which keeps a lab's journal and its folded state in step.

The package also has backups and views for one viewer.
"""
