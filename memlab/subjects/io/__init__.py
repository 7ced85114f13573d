"""``lab.io``: exports, imports, mirrors."""
