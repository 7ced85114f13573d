"""Disguises: a token is found in each at its position in the original text, within bounds of depth and bytes."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.kernel.privacy import screen
from memlab.kernel.privacy._disguises import MAX_ENCODED, VIEWS, Edit, View, read_views

# made up, and put together so that no scanner takes it for one
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7"


def encoded(text: str, times: int) -> str:
    for _ in range(times):
        text = base64.b64encode(text.encode()).decode()
    return text


def styled(character: str) -> str:
    """Return the mathematical sans-serif form of a letter or digit; other characters as they are."""
    for first, form in (("A", 0x1D5A0), ("a", 0x1D5BA), ("0", 0x1D7E2)):
        offset = ord(character) - ord(first)
        if 0 <= offset < (10 if first == "0" else 26):
            return chr(form + offset)
    return character


DISGUISED = {
    "plain": TOKEN,
    "over two lines": TOKEN[:20] + "\n" + TOKEN[20:],
    "indented": TOKEN[:20] + "\n    " + TOKEN[20:],
    "zero-width space": TOKEN[:9] + "\u200b" + TOKEN[9:],
    "soft hyphen": TOKEN[:9] + "\u00ad" + TOKEN[9:],
    "full width": "".join(chr(ord(item) + 0xFEE0) for item in TOKEN),
    "sans-serif": "".join(map(styled, TOKEN)),
    "Cyrillic": TOKEN.replace("p", "\u0440"),
    "percent escape": TOKEN.replace("_", "%5F"),
    "percent twice": TOKEN.replace("_", "%255F"),
    "HTML entity": TOKEN.replace("_", "&#95;"),
    "base64": encoded(TOKEN, 1),
    "base64 thrice": encoded(TOKEN, 3),
    "spaced": " ".join(TOKEN),
    "quoted-printable": TOKEN.replace("_", "=5F"),
    "JSON escape": TOKEN.replace("_", "\\u005f"),
    "hexadecimal": TOKEN.encode().hex(),
    "letter in front": "x" + TOKEN,
    "underscore in front": "_" + TOKEN,
    "upper case": TOKEN.upper(),
    "Markdown": TOKEN.replace("_", "\\_"),
    "two halves": f'"{TOKEN[:20]}" + "{TOKEN[20:]}"',
}


@pytest.mark.parametrize("disguised", DISGUISED.values(), ids=DISGUISED)
def test_a_token_is_found_in_its_disguise_and_what_is_around_it_stays(disguised: str) -> None:
    screened = screen(f"here you are: {disguised} is it")
    assert len(screened.findings) == 1
    result = screened.findings[0]
    assert result.type == "GitHub token"
    assert result.end - result.start >= len(disguised) - 4  # a sign around it may stay
    assert screened.text.startswith("here you are: ")
    assert screened.text.endswith(" is it")


def test_a_whole_token_does_not_go_on_in_the_next_line() -> None:
    assert (
        screen(f"{TOKEN}\nv2beta came later").text == "[REDACTED: GitHub token]\nv2beta came later"
    )


def test_a_line_of_an_env_file_does_not_run_into_the_next() -> None:
    text = "DB_PASSWORD=hunter22\nDB_PORT=5432\n"
    assert screen(text).text == "DB_PASSWORD=[REDACTED: password]\nDB_PORT=5432\n"


HOSTILE = [
    "%25", "&amp;", "\\u005c", "=3D", "aa ", "a ", "a\nb", "\u200b", "ghp_\n", "YWFh",
    "QUFBQUFBQUFBQUFB\n", '"+"', "6161",
    encoded("x" * 3000, 3), "//////", "password is a\n", "\u0430",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_decoding_is_bounded_in_number_and_length(piece: str) -> None:
    text = (piece * (20_000 // len(piece) + 1))[:20_000]
    read = [view.text for view, _ in read_views(text)]
    assert len(read) <= VIEWS
    assert max(map(len, read)) <= len(text)


@pytest.mark.long
def test_encoded_text_is_undone_up_to_a_limit() -> None:
    beyond = encoded("b" * MAX_ENCODED, 1)
    assert all(beyond in view.text for view, _ in read_views(f"{TOKEN} {beyond}"))


def test_the_limit_of_encoded_text_counts_all_of_it_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = encoded(TOKEN, 1)
    monkeypatch.setattr("memlab.kernel.privacy._disguises.MAX_ENCODED", 2 * len(token))
    assert (
        screen(f"{token} {token} {token}").text
        == f"[REDACTED: GitHub token] [REDACTED: GitHub token] {token}"
    )


@examples(50)
@given(
    st.text(max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.text(max_size=3)), max_size=4),
)
def test_a_view_knows_where_its_characters_stood(
    text: str, cuts: list[tuple[int, int, str]]
) -> None:
    edits, at = [], 0
    for start, length, new in sorted(cuts):
        if at <= start and start + length <= len(text) and length:
            edits.append(Edit(start, start + length, new))
            at = start + length
    view = View(text).edited(edits)
    for index, character in enumerate(view.text):
        start, end = view.origin(index, index + 1)
        assert 0 <= start < end <= len(text)
        inside = [edit for edit in edits if edit.start <= start < edit.end]
        assert inside or text[start:end] == character
