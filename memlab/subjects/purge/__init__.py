"""``lab.purge``: what goes, from where, checked before it goes; the receipt."""
