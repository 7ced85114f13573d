"""For every test of the server."""

import sys

# The client checks answers by jsonschema, which compiles a grammar of addresses where this package is installed: 2 s of
# each process, for a format that no schema here has.
sys.modules.setdefault("rfc3987_syntax", None)
