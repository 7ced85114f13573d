"""A pack's file as a module of Hy, for whoever trusts it: compiled by Hy to ordinary functions of the same meaning."""
