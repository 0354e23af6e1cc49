"""JSON as it is stored: equal values are equal texts, and what not every store keeps is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.errors import MalformedBody, TooLarge
from rota.domain.json_text import DEPTH_MAX, INTEGER_MAX, decode_json, encode_json, load_json

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=10)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-INTEGER_MAX, INTEGER_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_is_stored_comes_back(value: object) -> None:
    text = encode_json(value)
    assert load_json(text) == value
    assert decode_json(text, bytes_max=100_000) == value
    assert encode_json(load_json(text)) == text


def test_equal_values_are_equal_texts() -> None:
    assert (
        encode_json({"b": 1, "a": [1, "ü"]}) == '{"a":[1,"ü"],"b":1}' == encode_json({"a": [1, "ü"], "b": 1})
    )


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "Infinity",
        '{"a": -Infinity}',
        str(INTEGER_MAX + 1),
        str(-INTEGER_MAX - 1),
        "9" * 5_000,
        '"\\u0000"',
        '{"\\u0000": 1}',
        '"\\ud800"',
        '{"\\udfff": 1}',
        '{"a": 1, "a": 2}',
        nested(DEPTH_MAX + 2),
        nested(100_000),
    ],
)
def test_what_is_not_json_or_not_kept_everywhere_is_malformed(text: str) -> None:
    with pytest.raises(MalformedBody):
        decode_json(text, bytes_max=1_000_000)


def test_bytes_that_are_no_text_are_malformed() -> None:
    with pytest.raises(MalformedBody):
        decode_json(b'"\xff"', bytes_max=100)
    with pytest.raises(MalformedBody):
        decode_json('"\ud800"', bytes_max=100)


def test_the_deepest_nesting_is_kept() -> None:
    assert decode_json(nested(DEPTH_MAX + 1), bytes_max=1_000) == json.loads(nested(DEPTH_MAX + 1))


def test_a_text_over_its_limit_is_too_large_and_one_at_it_is_not() -> None:
    assert decode_json('"ü"', bytes_max=4) == "ü"
    with pytest.raises(TooLarge):
        decode_json('"ü"', bytes_max=3)
    assert encode_json("ü", bytes_max=4) == '"ü"'
    with pytest.raises(TooLarge):
        encode_json("ü", bytes_max=3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"params": {"a": {"b": "\\u0000"}}}', "params.a.b"),
        ('{"params": [1, [2, "\\ud800"]]}', "params.1.1"),
        ('{"params": {"\\u0000": 1}}', "params"),
        ('{"id": "p\\u0000"}', "id"),
        ('{"n": 9007199254740993}', "n"),
        ('{"n": 1e999}', "n"),
        ('{"params": {"a": ' + nested(40) + "}}", "params.a"),
        ('"\\u0000"', None),
    ],
)
def test_what_is_not_kept_is_told_with_its_path(text: str, expected: str | None) -> None:
    with pytest.raises(MalformedBody) as caught:
        decode_json(text, bytes_max=10_000)
    assert caught.value.field == expected


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1: "a"}, object(), {"a": {1, 2}}, "\x00", b"bytes"]
)
def test_a_value_that_is_not_json_is_not_stored(value: object) -> None:
    with pytest.raises(MalformedBody):
        encode_json(value)
