"""The version of memlab, equal to the versions in pyproject.toml and .core/pyproject.toml."""

__all__ = ["__version__"]

__version__ = "0.2.0"
