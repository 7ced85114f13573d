"""Optional dependencies: what a missing or damaged package answers."""

from __future__ import annotations

import sys

import pytest

from memlab.errors import MissingExtra, require_extra


def test_a_missing_package_answers_with_the_line_that_installs_it():
    with pytest.raises(MissingExtra) as caught, require_extra("plots", "A figure"):
        import no_such_package.figure  # noqa: F401
    assert str(caught.value) == (
        "A figure needs no_such_package. Install it with: pip install 'memlab-core[plots]'"
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({}, "ModuleNotFoundError: No module named 'half_installed.figure'"),
        ({"figure.py": ""}, "ImportError: cannot import name 'Figure'"),
        ({"figure.py": "raise OSError('libfreetype.so: cannot open')"}, "OSError: libfreetype.so"),
        ({"figure.py": "class Figure"}, "SyntaxError: expected ':'"),
    ],
)
def test_a_damaged_package_answers_with_its_error(tmp_path, monkeypatch, files, fault):
    (tmp_path / "half_installed").mkdir()
    for name, text in files.items():
        (tmp_path / "half_installed" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("half_installed", "half_installed.figure"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(MissingExtra) as caught, require_extra("plots", "A figure"):
        from half_installed.figure import Figure  # noqa: F401
    message = str(caught.value)
    assert f"which is installed but cannot be imported ({fault}" in message
    assert message.endswith("pip install --force-reinstall 'memlab-core[plots]'")


def test_an_extra_within_another_keeps_its_message():
    with (
        pytest.raises(MissingExtra, match=r"^B needs no_such_package\."),
        require_extra("widgets", "A"),
        require_extra("plots", "B"),
    ):
        import no_such_package  # noqa: F401
