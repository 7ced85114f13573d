"""The privacy gate: redacted and accepted texts, and the cost of screening."""

from __future__ import annotations

from collections.abc import Iterator
from re import _parser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.errors import PrivacyError
from memlab.kernel.privacy import Finding, refuse, screen, screen_many
from memlab.kernel.privacy._kinds import KINDS, Kind
from memlab.kernel.privacy._screen import merge_findings

# No real credential stands here: each is made up, and put together so that no scanner takes it for one.
LETTERS = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7bC9d"
PEM = "-----BEGIN {0}PRIVATE KEY-----\nMIIEowIBAAKCAQEAx\nZm9vYmFy\n-----END {0}PRIVATE KEY-----"

SECRETS = [
    (PEM.format(""), "private key", None),
    ("see " + PEM.format("RSA ") + " above", "private key", None),
    (
        "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNzaC1r" * 5 + "\nand so on",
        "private key",
        "b3BlbnNzaC1r",
    ),
    ("AKIA" + "IOSFODNN7EXAMPLE", "AWS access key", None),
    ("ghp_" + LETTERS[:36], "GitHub token", None),
    ("github_pat_" + LETTERS, "GitHub token", None),
    ("glpat-" + LETTERS[:20], "GitLab token", None),
    ("xoxb-" + "123456789012-" + LETTERS[:24], "Slack token", None),
    ("AIza" + LETTERS[:35], "Google API key", None),
    ("sk_live_" + LETTERS[:24], "Stripe key", None),
    ("sk-proj-" + LETTERS, "OpenAI key", None),
    ("sk-" + LETTERS, "API key", None),
    ("npm_" + LETTERS[:36], "npm token", None),
    ("pypi-AgE" + LETTERS, "PyPI token", None),
    ("eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + LETTERS, "JWT", None),
    ("Authorization: Bearer " + LETTERS, "bearer token", LETTERS),
    ("Authorization: Basic dXNlcjpwYXNz", "credentials", "dXNlcjpwYXNz"),
    ("git clone https://bob:s3cr3t@example.org/x.git", "URL password", "s3cr3t"),
    ("postgresql://app:p@ssw0rd@db:5432/main", "URL password", "p@ssw0rd"),
    ("redis://:hunter2@cache:6379", "URL password", "hunter2"),
    ("Server=db;User=sa;Password=letmein;", "password", "letmein"),
    ("AccountName=x;AccountKey=" + LETTERS + "==;", "connection string key", LETTERS),
    ("password = hunter2", "password", "hunter2"),
    ("password: str = 'hunter2'", "password", "hunter2"),
    ('{"user": "bob", "password": "letmein"}', "password", "letmein"),
    ("Passwort: geheim1!", "password", "geheim1!"),
    ("curl --password=letmein", "password", "letmein"),
    ("my password is 'correct horse battery'", "password", "correct horse battery"),
    ("My wifi password is swordfish.", "password", "swordfish"),
    ("the password for the router is Admin1234", "password", "Admin1234"),
    ("api_key: 9f86d081884c7d659a2feaa0c55ad015", "API key", "9f86d081884c7d659a2feaa0c55ad015"),
    ("const clientSecret = 'a8f5f167f44f4964'", "secret", "a8f5f167f44f4964"),
    ("SECRET_KEY=abcdefgh", "secret", "abcdefgh"),
    ("export DB_PASSWORD_PROD=letmein", "password", "letmein"),
    ("signing key = 'kR8vT2mW9xZ4bN7q'", "API key", "kR8vT2mW9xZ4bN7q"),
    ("my pass: hunter2", "password", "hunter2"),
    ("5J" + "N2yZcPgQamfAYtdutYWipHgz8HgybBFuienHPmKzAnEiXaiJg", "Bitcoin key", None),
    ("clientSecret: '48a15920b736'", "secret", "48a15920b736"),
    ("use the token " + LETTERS[:22] + " for it", "token", LETTERS[:22]),
    (
        "use the token " + "aBcdEfgh1jKlmnOp2qRsTuv3" + " for it",
        "token",
        "aBcdEfgh1jKlmnOp2qRsTuv3",
    ),
]

ORDINARY = [
    "my password is wrong",
    "my password is stored in the vault",
    "my password is being reset",
    "the secret is to stir slowly",
    'the token is "fooBarBazQux"',
    "bypass: hunter2",
    "the key idea is aVeryLongCamelCaseIdentifierName2",
    "password must contain 8 characters",
    "password: required",
    "password = get_password()",
    "login(user, password=password)",
    "password = config.db2.password",
    "password: os.environ['PW1']",
    "password: ${DB_PASSWORD}",
    "postgres://user:<password>@host/db",
    "PASSWORD_MIN_LENGTH=12345",
    "token: Token",
    "max_tokens=4096, pad_token='<pad>'",
    "tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased2')",
    "token embeddings of Qwen2ForCausalLM12 are shared",
    "bearer authentication-mechanism",
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "primary key: user_id_12345678",
    "base64 aGVsbG8gd29ybGQgdGhpcyBpcyBhIHRlc3Q=",
    "git@github.com:org/repo.git and https://user@host/path",
    "http://localhost:8080/x?mail=a@b.org",
    "/usr/lib/python3/token/cache_v2.json",
    "pwd: /opt/data1",
    "task-risk-desk-management-of-long-hyphenated-words",
    "sk-learn-contrib-something-very-long",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
]


@pytest.mark.parametrize(("text", "type", "secret"), SECRETS, ids=[type for _, type, _ in SECRETS])
def test_a_secret_is_replaced_by_its_type(text: str, type: str, secret: str | None) -> None:
    screening = screen(text)
    assert [finding.type for finding in screening.findings] == [type]
    assert f"[REDACTED: {type}]" in screening.text
    result = screening.findings[0]
    assert text[result.start : result.end] not in screening.text
    if secret is not None:
        assert secret not in screening.text


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_chat_and_code_pass(text: str) -> None:
    assert screen(text).findings == ()
    assert screen(text).text == text


def test_text_around_secrets_is_unchanged() -> None:
    text = "İstanbul: password = hunter2, then ghp_" + LETTERS[:36] + "!"
    screening = screen(text)
    assert (
        screening.text
        == "İstanbul: password = [REDACTED: password], then [REDACTED: GitHub token]!"
    )
    first, second = screening.findings
    assert text[first.start : first.end] == "hunter2"
    assert text[second.start : second.end].startswith("ghp_")


def test_overlapping_findings_become_one() -> None:
    assert screen("token=ghp_" + LETTERS[:36]).text.count("[REDACTED") == 1


fragments = st.sampled_from([text for text, _, _ in SECRETS] + ORDINARY) | st.text(max_size=20)
texts = st.lists(fragments, max_size=6).map(" ".join)


@pytest.mark.long
@examples(40)
@given(texts)
def test_screening_twice_finds_nothing_more(text: str) -> None:
    once = screen(text)
    assert screen(once.text).findings == ()


@pytest.mark.long
@examples(40)
@given(texts)
def test_the_text_is_rebuilt_from_what_the_findings_leave(text: str) -> None:
    screening = screen(text)
    position, parts = 0, []
    for finding in screening.findings:
        assert position <= finding.start < finding.end <= len(text)
        parts += [text[position : finding.start], f"[REDACTED: {finding.type}]"]
        position = finding.end
    assert "".join([*parts, text[position:]]) == screening.text


@pytest.mark.long
@examples(25)
@given(st.lists(texts, max_size=8))
def test_many_texts_are_screened_as_one_by_one(many: list[str]) -> None:
    assert screen_many(many) == [screen(text) for text in many]


def test_refuse_names_the_place_and_never_the_secret() -> None:
    refuse("style", "tag")
    with pytest.raises(
        PrivacyError, match=r"tag holds .*\(password, line 2, column 12\)"
    ) as refused:
        refuse("first\npassword = hunter2", "tag")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(PrivacyError, match=r"\(password, line 1, column 12\) and 1 more"):
        refuse(f"password = hunter2 and later ghp_{LETTERS[:36]}", "tag")


@pytest.mark.parametrize(
    "text",
    [
        "password: 'changeme'",
        "sk-webkit-transition-duration-300ms",
        "token=eos_token_id_50256_default",
        "Password: 8-64 characters",
        "password: min8chars",
        "AWS_SECRET_ACCESS_KEY=your-secret-here-123",
    ],
)
def test_ordinary_text_at_the_position_of_a_secret_passes(text: str) -> None:
    assert screen(text).text == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("das Passwort lautet hunter2", "hunter2"),
        ("mot de passe : hunter2", "hunter2"),
        ("my api key is 9f86d081884c7d659a2feaa0c55ad015", "9f86d081884c7d659a2feaa0c55ad015"),
        ("curl -u bob:hunter22 https://x.example", "hunter22"),
        ("mysql -u root -phunter22 shop", "hunter22"),
        ("machine api.example.com login bob password hunter2", "hunter2"),
        ("db.example.com:5432:shop:app:hunter22", "hunter22"),
        ("postgres://bob:hun/ter2@db/main", "hun/ter2"),
        ("Cookie: sessionid=38afes7a8d9f0a7b6c5d4e3f2a1b0c9d", "38afes7a8d9f0a7b6c5d4e3f2a1b0c9d"),
        (
            "acid actor alpha amateur anchor apple arctic armor arrow atom autumn avocado",
            "acid actor alpha",
        ),
    ],
)
def test_secrets_revealed_by_a_field_or_a_sentence_are_redacted(text: str, secret: str) -> None:
    assert secret not in screen(text).text


def test_the_gate_and_the_many_agree_on_what_is_ordinary() -> None:
    texts = (
        [text for text, _, _ in SECRETS]
        + ORDINARY
        + ["naïve café", "one\ntwo", "a b c d e f g h i"] * 8
    )
    assert screen_many(texts) == [screen(text) for text in texts]


@pytest.mark.parametrize(
    "kind", KINDS, ids=[f"{number} {kind.name}" for number, kind in enumerate(KINDS)]
)
def test_no_unbounded_repetition_is_nested_in_another(kind: Kind) -> None:
    """So the work grows with the text alone: a repetition that can match in several ways is bounded."""
    nested = [
        (outer, inner)
        for outer, inner in repetitions(_parser.parse(kind.form, kind.flags), ())
        if inner > 300 and any(most > 8 for most in outer)
    ]
    assert nested == []


def repetitions(parsed: Any, outer: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Return the bounds of each repetition and of those around it; possessive ones match in one way only."""
    for op, value in parsed:
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            yield outer, int(value[1])
            yield from repetitions(value[2], (*outer, int(value[1])))
        elif name == "POSSESSIVE_REPEAT":
            yield from repetitions(value[2], outer)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from repetitions(branch, outer)
        elif name == "SUBPATTERN":
            yield from repetitions(value[3], outer)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from repetitions(value[1], outer)
        elif name == "ATOMIC_GROUP":
            yield from repetitions(value, outer)


NAMED = (
    "the password is ",
    "password: ",
    "api_key = ",
    "token=",
    "secret is '",
    "Authorization: Bearer ",
    "-u bob:",
)
FORMED = [
    text
    for text, _, _ in SECRETS
    if len(text) >= 20 and screen(text).text.startswith("[") and "\n" not in text
]


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("secret", FORMED)
def test_no_part_of_a_secret_is_left_where_two_rules_find_it(name: str, secret: str) -> None:
    """A name finds the secret up to a full stop or a sign, its form finds all of it, in whichever order."""
    for text in (f"{name}{secret}", f"{name}{secret}' and go on", f"see {secret} ({name}{secret})"):
        left = screen(text).text
        parts = [secret[start : start + 8] for start in range(len(secret) - 7)]
        assert [part for part in parts if part in left] == [], left


spans = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 12), st.sampled_from("ab")), max_size=8
)


@examples(200)
@given(spans)
def test_merged_findings_cover_what_any_of_them_covered_and_nothing_else(
    drawn: list[tuple[int, int, str]],
) -> None:
    given_findings = [Finding(type, start, start + length) for start, length, type in drawn]
    merged = merge_findings(list(given_findings))
    covered = {
        position for finding in given_findings for position in range(finding.start, finding.end)
    }
    assert [position for entry in merged for position in range(entry.start, entry.end)] == sorted(
        covered
    )
    for item in merged:
        first = [each for each in given_findings if each.start == item.start]
        longest = max(each.end for each in first)
        assert item.type == next(each.type for each in first if each.end == longest)


@pytest.mark.parametrize(
    "word", ["token", "secret", "api key", "api_key", "password", "credential"]
)
def test_a_random_string_after_a_word_for_a_secret_is_redacted_without_an_operator(word):
    text = f"Use the {word} 8fK2mZq0PxW3vN7tR1yLb6 for staging"
    assert "8fK2mZq0PxW3vN7tR1yLb6" not in screen(text).text
    assert "8fK2mZq0PxW3vN7tR1yLb6" in screen(text.replace(word, "branch")).text
