"""Data as text of the dialect reads back as the same data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError, PolicyError
from memlab.kernel.language import read_data, with_setting, write_call, write_data
from memlab.kernel.language.reader import Text, read_forms

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["a\r\nb\r", "\\n", '"', "\x00\x1b[0m", "\u202e", "\ufeff", "]]", "#[[x]]", ";", "'"]
)
data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def read(text):
    source = Text(text)
    (form,) = read_forms(source)
    return read_data(form, source)


@pytest.mark.long
@given(data)
def test_written_forms_are_read_back(value):
    back = read(write_data(value))
    assert back == value
    assert type(back) is type(value)


@given(texts)
def test_a_file_has_no_invisible_characters(text):
    written = write_data(text)
    assert not set(written) & set("\r\x00\x1b\u202e\u200f\ufeff\u2028")


def test_a_call_has_keywords():
    assert (
        write_call("edge", {"source": 1, "from_kind": "tag", "on": None})
        == '(edge :source 1 :from-kind "tag" :on None)'
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_values_that_are_no_data_are_refused(value):
    with pytest.raises(InputError):
        write_data(value)


@pytest.mark.parametrize(
    "text", ["(+ 1 2)", "name", "(join 1.5)", "(join 55296)", "(table 1 2)", '(int "x")', ":k"]
)
def test_code_is_no_data(text):
    with pytest.raises(PolicyError):
        read(text)


def test_a_setting_takes_the_place_of_the_one_that_was_there():
    pack = '(require memlab.dialect *)\n\n(pack mine "x") ; note\n(setting damping (param :damping 0.7 :low 0 :high 1))\n'
    assert with_setting(pack, "damping", 0.5) == pack.replace(
        "(param :damping 0.7 :low 0 :high 1)", "0.5"
    )
    assert with_setting(pack, "limit", 5) == pack.replace('"x")', '"x")\n(setting limit 5)')
    with pytest.raises(InputError, match="the text of a pack"):
        with_setting("(fn [x] x)", "limit", 5)
