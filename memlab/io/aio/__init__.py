"""A lab for programs with an event loop. Types for editors are in ``__init__.pyi``."""

from memlab.io.aio.asynclab import AsyncLab

__all__ = ["AsyncLab"]
