"""How many examples a property test tries."""

from hypothesis import settings


def examples(thorough, quick=10, **more):
    """Return settings of a property test: ``thorough`` examples under ``pytest -m slow``, else ``quick``.

    Without it: 200 and 10. For tests whose examples cost more, or need more, than most.
    """
    long = settings.get_current_profile_name() == "thorough"
    return settings(max_examples=thorough if long else min(quick, thorough), **more)
