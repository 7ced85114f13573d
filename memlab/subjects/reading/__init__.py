"""What a text says: its sentences and what they do, names, claims, properties, changes. It knows no memory and no lab."""
