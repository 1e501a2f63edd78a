"""Secrets: every row of the table, what must be left alone, and texts made to be slow or strange."""

import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keepsake.core import secrets

ANY = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0"
HEX = "3f9a1c7e5b2d8046"

#: For each row, something that looks nearly like it and is none.
NEAR = {
    "private": "private: this is `<private>` as a word, and <privately> too",
    "private-key": "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0B\n-----END PUBLIC KEY-----",
    "keepsake-proposal": "tokens of proposals begin with ks_prop_ and 64 digits",
    "keepsake-key": "keys begin with ks_live_ and 64 digits, such as ks_live_3f9a…",
    "keepsake-token": "ks_oauth_…",
    "aws-access-key": "AKIAQ3EGTZ and ASIA PACIFIC REGION, BAKIA1234567890123456789",
    "aws-secret-key": "the secret access key: rotated every ninety days by a job",
    "github-token": "ghp_short, GHP_ and github_pat_docs",
    "gitlab-token": "glpat-short is no token",
    "slack-token": "xoxo-love and xoxb-1",
    "stripe-key": "pk_live_aB3dE5gH7jK9mN1pQ2sT4vW6 can be published, task_live_update too",
    "anthropic-key": "keys of Anthropic begin with sk-ant-",
    "openai-key": "class sk-fading-circle-container-large, a task-0123456789012345678901 and disk-usage-of-the-node-17",
    "google-key": "AIza is how it begins",
    "npm-token": "npm_config_registry=https://registry.example.com",
    "pypi-token": "pypi-server and pypi-AgE",
    "huggingface-token": "hf_hub_download loads it",
    "sendgrid-key": "SG.1 and MSG.something.else",
    "twilio-key": "SKU 3f9a1c7e5b2d80463f9a1c7e5b2d8046 and SK3f9a",
    "digitalocean-token": "dop_v1_ is how it begins",
    "vault-token": "the hvs.example host",
    "age-key": "AGE-SECRET-KEY-1 is how it begins",
    "groq-key": "gsk_model",
    "linear-key": "lin_api_version",
    "atlassian-token": "ATATT3 is how it begins",
    "shopify-token": "shpat_ is how it begins",
    "telegram-token": "12:AAron and 123456789:AAB",
    "jwt": "eyJ is how a JWT begins; eyJhbGciOiJIUzI1NiJ9 alone says nothing",
    "authorization": "Authorization: Bearer tokens are needed; bearer authentication-mechanisms",
    "cookie": "Cookie: chocolate. Set-Cookie: a header",
    "connection-string": "postgres://user:password@localhost/db, postgres://app@db:5432/app?x=a@b and redis://:${PW}@host",
    "url-password": "http://localhost:8080/path@home, https://user:<password>@host and ssh://git@host:22/x@y",
    "command-credential": "curl -u admin https://x.example; docker run -u 1000:1000; mysql -p app",
    "credential": "password=****, password: <password>, token=${TOKEN}, api_key = os.environ['KEY'], secret: string",
    "env-value": "PUBLIC_KEY=abcdefgh PRIMARY_KEY=user_id STRIPE_KEY=${STRIPE_KEY} X_KEY=12345",
    "flag-value": "deploy --token $TOKEN --password-file /run/secrets/pw",
    "told-credential": "The password is required, the token is 256-bit, the API key is read-only and base64-encoded",
    "random-token": "the key is in AbstractSingletonProxyFactoryBean2024Impl or key_of_the_customer_table_by_region",
}
#: What people and agents write all day.
ORDINARY = [
    "The password policy asks for 12 characters, and a token budget of 4096 is kept.",
    "max_tokens=4096, total_tokens: 123456, next_token=abc123def, eos_token: '</s>', tokens: 12",
    "commit 3f9a1c7e5b2d80463f9a1c7e5b2d80463f9a1c7e fixes the key handling",
    "id 123e4567-e89b-12d3-a456-426614174000, key of the row: user",
    "sha256:3f9a1c7e5b2d80463f9a1c7e5b2d80463f9a1c7e5b2d80463f9a1c7e5b2d8046 is the image's digest",
    '"integrity": "sha512-aB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0aB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0=="',
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIaB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0 me@host is the public key",
    "def login(user: str, password: str, token: str | None = None) -> Session: ...",
    "self.token = request.headers['x']; password = get_password(); const apiKey = config.apiKey;",
    "Secret: nobody knows. Token: a unit of text. Password: see the vault.",
    "pwd=/home/ada/work and secret=/run/secrets/database",
    "Alice's dog is called Biscuit; the key insight is that we deploy on Fridays.",
    "https://example.com/a?next_token=xyz123&page=2 and mailto:ada@example.com",
    "secrets: inherit\ncredentials: include\ntokenizer: cl100k_base\nauthor: Ada99",
    "The secret is to use sha256-based caching and Python3.11 for the API key rotation of 2026-01-01.",
]
#: Shapes in which a password of any length goes over the table.
WRITTEN = [
    "password=hunter2",
    "password = 'hunter2'",
    'PASSWORD: "hunter2"',
    "Password: hunter2",
    "- db_password: hunter2 # staging",
    '{\\"password\\": \\"hunter2\\"}',
    "password: str = 'hunter2'",
    "mysql://root:hunter2@localhost/app",
    "Server=db;User Id=app;Password=hunter2;Database=x",
    "https://x.example/?user=a&password=hunter2&y=1",
    "<password>hunter2</password>",
    "export DB_PASSWORD=hunter2",
    "--password hunter2",
    "CREATE USER ada WITH PASSWORD 'hunter2'",
    "ALTER USER ada IDENTIFIED BY 'hunter2';",
    "the password for staging is hunter2.",
    "**Password:** hunter2",
    "log in with password hunter2",
    "| password | hunter2 |",
    "dbPass = 'hunter2'",
    "client-secret=hunter2",
    "_authToken=hunter2",
    "docker login -u me -p hunter2 registry",
    "curl -u me:hunter2 https://x.example",
    "redis://:hunter2@cache:6379/0",
    "<private>hunter2",
    "<PRIVATE>a <private>b</private> hunter2</PRIVATE>",
    'password = "hunter2" if debug else None',
    "password=hunter2 sk-ant-api03-" + ANY,
]


@pytest.mark.parametrize("pattern", secrets.PATTERNS, ids=lambda pattern: pattern.name)
def test_every_kind_of_secret_is_found_and_named(pattern: secrets.Pattern) -> None:
    alone = secrets.redacted(pattern.example)
    amid = secrets.redacted(f"We met.\n{pattern.example}\nAnd then we left.")

    assert pattern.name in alone.found and f"[redacted:{pattern.name}]" in alone.text
    assert pattern.name in amid.found and amid.text.startswith("We met.\n")


@pytest.mark.parametrize("pattern", secrets.PATTERNS, ids=lambda pattern: pattern.name)
def test_what_only_looks_like_a_secret_is_left_alone(pattern: secrets.Pattern) -> None:
    assert secrets.redacted(NEAR[pattern.name]) == secrets.Redacted(NEAR[pattern.name])


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert secrets.redacted(text) == secrets.Redacted(text)


@pytest.mark.parametrize("text", WRITTEN)
def test_a_short_password_is_found_however_it_is_written(text: str) -> None:
    made = secrets.redacted(text)

    assert "hunter2" not in made.text
    assert secrets.redacted(made.text).text == made.text


def test_the_text_around_a_secret_stays() -> None:
    made = secrets.redacted("Use postgres://app:hunter2@db:5432/x, then https://a:b1c2@h/p?token=abcd1234&q=1.")

    assert made.text == (
        "Use postgres://app:[redacted:connection-string]@db:5432/x,"
        " then https://a:[redacted:url-password]@h/p?token=[redacted:credential]&q=1."
    )
    assert made.found == ("connection-string", "url-password", "credential")


def test_a_secret_behind_an_escaped_line_break_is_found() -> None:
    text = "output: done\\nghp_" + ANY + "aaaaaa\\nsk-proj-" + ANY + "\\neyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.x"

    assert secrets.redacted(text).found == ("github-token", "openai-key", "jwt")


def test_a_private_key_that_is_cut_off_is_removed_as_far_as_it_goes() -> None:
    made = secrets.redacted(f"-----BEGIN PRIVATE KEY-----\n{ANY}{ANY}\n{ANY} and so on")

    assert made.text == "[redacted:private-key] and so on"


def test_a_mention_of_a_private_key_does_not_eat_the_text() -> None:
    made = secrets.redacted("A key begins with -----BEGIN PRIVATE KEY----- and Ada keeps hers in a drawer.")

    assert made.text.endswith(" and Ada keeps hers in a drawer.")


def test_places_in_the_text_are_found_again() -> None:
    text = "Ada. password=hunter2 Bob. token=abcd1234 Eve."
    made = secrets.redacted(text)

    for word in ("Ada", "Bob", "Eve"):
        at = text.index(word)
        assert made.text[made.moved(at) : made.moved(at + 3)] == word
    assert made.moved(0) == 0 and made.moved(len(text)) == len(made.text)


def test_metadata_is_redacted_in_depth_and_by_its_keys() -> None:
    given = {"api_key": "hunter2", "deep": [{"Authorization": "Basic abc", "note": "password=hunter2"}], "tokens": 12}
    given |= {"token": "<token>", "ghp_" + ANY + "aaaaaa": True, "next_token": "hunter2", "password": None}

    made = secrets.redacted_json(given)

    assert made.value == {
        "api_key": "[redacted:credential]",
        "deep": [{"Authorization": "[redacted:credential]", "note": "password=[redacted:credential]"}],
        "tokens": 12,
        "token": "<token>",
        "[redacted:github-token]": True,
        "next_token": "hunter2",
        "password": None,
    }
    assert made.found == ("credential", "github-token")
    assert secrets.redacted_json(made.value).value == made.value


PIECES = st.one_of(
    st.sampled_from([pattern.example for pattern in secrets.PATTERNS]),
    st.sampled_from([trigger for pattern in secrets.PATTERNS for trigger in pattern.triggers]),
    st.sampled_from(
        ["password", "=", ":", " ", "\n", '"', "'", "`", "\\", "\\n", "@", "//", "<", ">", "hunter2", "&", "["]
    ),
    st.sampled_from(["[redacted:credential]", "[redacted:", "]", "</private>", "token", " is ", "--", ",", ";", "|"]),
    st.text(max_size=6),
)


@settings(max_examples=600, deadline=None)
@example("password=[redacted:credential]x")
@example("İ password=hunter2")
@given(st.lists(PIECES, max_size=12).map("".join))
def test_redacting_again_changes_nothing_and_nothing_is_raised(text: str) -> None:
    once = secrets.redacted(text)
    again = secrets.redacted(once.text)

    assert again.text == once.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | PIECES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PIECES, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_redacting_json_again_changes_nothing(value: object) -> None:
    once = secrets.redacted_json(value).value

    assert secrets.redacted_json(once).value == once


SLOW = [
    "token ",
    "token=x(",
    'password="',
    "eyJ",
    "://a:b",
    "-----BEGIN PRIVATE KEY-----\n",
    "<private ",
    "sk-",
    "A_",
    " ",
]


@pytest.mark.parametrize("piece", SLOW)
def test_a_text_made_to_be_slow_is_read_to_its_end(piece: str, record_property: Callable[[str, object], None]) -> None:
    tail = "\n\n</private> and then password=hunter2"
    started = time.process_time()

    made = secrets.redacted((piece * 200_000)[:200_000] + tail)

    # Measured, not asserted: the machine may be busy. About a second for a million characters is usual.
    record_property("cpu_seconds", round(time.process_time() - started, 3))
    assert "hunter2" not in made.text
