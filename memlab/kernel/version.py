"""The version of memlab, equal to those in pyproject.toml and .core/pyproject.toml."""

__all__ = ["__version__"]

__version__ = "0.2.0"
