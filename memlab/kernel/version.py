"""The version of memlab, which equals the version in pyproject.toml."""

__all__ = ["__version__"]

__version__ = "0.1.0"
