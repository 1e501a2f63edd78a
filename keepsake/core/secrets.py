"""Secrets in text: one table of what they look like, and their removal before anything is kept, sent or logged."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from keepsake.core import credentials, finders
from keepsake.core.finders import EDGE, LEAST, Finder, matches

CREDENTIAL = "credential"
#: Enough for all but texts made to need more, which must not make us slow.
ROUNDS = 4
_MARK = r"\[redacted:([a-z0-9-]+)\]"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of secret; `find` is asked only about texts that hold a trigger in whatever case."""

    name: str
    what: str
    triggers: tuple[str, ...]
    find: Finder
    example: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a secret stood in the original text."""

    start: int
    end: int
    name: str

    @property
    def mark(self) -> str:
        """What stands there now."""
        return f"[redacted:{self.name}]"


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets; never the secrets themselves."""

    text: str
    cuts: tuple[Cut, ...] = ()

    @property
    def found(self) -> tuple[str, ...]:
        """The names of the patterns that were found, each once, in order."""
        return tuple(dict.fromkeys(cut.name for cut in self.cuts))

    def moved(self, offset: int) -> int:
        """Where a place in the original text is now; within a secret, the end of its mark."""
        grown = 0
        for cut in self.cuts:
            if offset <= cut.start:
                break
            grown += len(cut.mark) - (min(offset, cut.end) - cut.start)
        return offset + grown

    def originals(self, cuts: Iterable[Cut]) -> Iterator[Cut]:
        """Cuts in this text as cuts in the original; one that touches a mark takes in all that the mark stands for."""
        begins, ends, shrinks, shrunk = [], [], [0], 0
        for cut in self.cuts:
            begins.append(cut.start - shrunk)
            shrunk += cut.end - cut.start - len(cut.mark)
            ends.append(cut.end - shrunk)
            shrinks.append(shrunk)
        for cut in cuts:
            n, m = bisect_right(begins, cut.start), bisect_left(begins, cut.end)
            start = self.cuts[n - 1].start if n and cut.start < ends[n - 1] else cut.start + shrinks[n]
            end = self.cuts[m - 1].end if m and cut.end <= ends[m - 1] else cut.end + shrinks[m]
            yield Cut(start, end, cut.name)


@dataclass(frozen=True, slots=True)
class RedactedJson:
    """A JSON value without its secrets."""

    value: object
    found: tuple[str, ...] = ()


def redacted(text: str) -> Redacted:
    """Put `[redacted:NAME]` in the place of every secret."""
    made = Redacted(text)
    # A mark can lay bare what touched the secret it stands for, so what was made is read again.
    for _ in range(ROUNDS):
        more = list(made.originals(_cuts(made.text)))
        cuts = _merged([*made.cuts, *more]) if more else made.cuts
        if cuts == made.cuts:
            break
        made = Redacted(_marked(text, cuts), cuts)
    return made


def in_lines(text: str) -> str:
    """A text without its secrets, cut out of the whole, with every line where it was."""
    pieces, at = [], 0
    for cut in redacted(text).cuts:
        pieces += [text[at : cut.start], cut.mark, "\n" * text.count("\n", cut.start, cut.end)]
        at = cut.end
    return "".join((*pieces, text[at:]))


def _marked(text: str, cuts: Iterable[Cut]) -> str:
    pieces, at = [], 0
    for cut in cuts:
        pieces += [text[at : cut.start], cut.mark]
        at = cut.end
    return "".join(pieces) + text[at:]


def redacted_json(value: object) -> RedactedJson:
    """The same for every string of a JSON value; strings under a key that names a secret go whole."""
    found: list[str] = []
    made = _walked(value, found)
    return RedactedJson(made, tuple(dict.fromkeys(found)))


def _walked(value: object, found: list[str]) -> object:
    if isinstance(value, str):
        clean = redacted(value)
        found += clean.found
        return clean.text
    if isinstance(value, Mapping):
        return {_walked(key, found): _under(key, part, found) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_walked(part, found) for part in value)
    return value


def _under(key: object, value: object, found: list[str]) -> object:
    is_held = isinstance(key, str) and isinstance(value, str) and credentials.holds_secret(key)
    if is_held and len(str(value)) >= LEAST and not credentials.is_placeholder(str(value)):
        found.append(CREDENTIAL)
        return f"[redacted:{CREDENTIAL}]"
    return _walked(value, found)


def _cuts(text: str) -> Iterator[Cut]:
    if "[redacted:" in text:
        # A mark says `key` and `token` too, and must not make a secret of what stands behind it.
        text = credentials.compiled(_MARK).sub(lambda mark: f"[redacted:{'x' * len(mark[1])}]", text)
    lowered = text.lower()
    for pattern in PATTERNS:
        if any(trigger in lowered for trigger in pattern.triggers):
            for start, end in pattern.find(text):
                yield Cut(start, end, pattern.name)


def _merged(cuts: Iterable[Cut]) -> tuple[Cut, ...]:
    """Cuts in order, overlapping ones joined under the name that stands first in the table."""
    made: list[Cut] = []
    for cut in sorted(cuts, key=lambda cut: (cut.start, cut.end)):
        if not made or cut.start >= made[-1].end:
            made.append(cut)
            continue
        last = made.pop()
        name = min(last.name, cut.name, key=_ORDER.__getitem__)
        made.append(Cut(last.start, max(last.end, cut.end), name))
    return tuple(made)


def _prefixed(name: str, what: str, prefix: str, tail: str, example: str) -> Pattern:
    """A secret that begins with letters nothing else begins with."""
    return Pattern(name, what, (prefix.lower(),), matches(re.escape(prefix) + tail), prefix + example)


#: Examples are put together here, so that no scanner of repositories takes this file for a leak.
_ANY = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0"
_HEX = "3f9a1c7e5b2d8046"
_LETTERS = "[A-Za-z0-9]"
_SAFE = "[A-Za-z0-9_-]"
_SERVERS = (
    r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|clickhouse|cockroachdb|nats|ldaps?|s?ftps?"
    r"|smtps?|imaps?)(?:\+\w{1,20})?"
)
_PASSWORD = r"""(?P<secret>[^\s/"'<>`]{1,256}(?=@)|[^\s"'<>`]{1,256}?(?=@))"""
_USER = r"""(?P<user>[^\s/:"'<>`]{0,128})"""

#: Specific kinds first: where two overlap, the first one gives the name.
PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "private",
        "What someone marked as private; without an end, all that follows.",
        ("<private",),
        finders.blocks,
        "<private>my salary is 5000</private>",
    ),
    Pattern(
        "private-key",
        "A private key in PEM or PGP armour, whole.",
        ("private key",),
        finders.private_keys,
        f"-----BEGIN RSA PRIVATE KEY-----\n{_ANY}{_ANY}\n{_ANY}\n-----END RSA PRIVATE KEY-----",
    ),
    _prefixed("keepsake-key", "A key of Keepsake itself.", "ks_live_", "[0-9A-Za-z]{16,}", _HEX * 4),
    _prefixed("keepsake-proposal", "The token of a proposal.", "ks_prop_", "[0-9A-Za-z]{16,}", _HEX * 4),
    _prefixed("keepsake-token", "A code or token of Keepsake itself.", "ks_oauth_", "[0-9A-Za-z]{16,}", _HEX * 4),
    Pattern(
        "aws-access-key",
        "An access key id of AWS.",
        ("akia", "asia", "abia", "acca"),
        matches(r"(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
        "AKIA" + "Q3EGTZ7WJXK2MPLR",
    ),
    Pattern(
        "aws-secret-key",
        "A secret access key of AWS, behind its name or its id.",
        ("secret", "akia", "asia"),
        matches(
            r"(?i)(?:secret[ _-]?(?:access[ _-]?)?key|A[KS]IA[A-Z0-9]{16})[^A-Za-z0-9/+]{1,12}"
            r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        "secret access key: " + "wJa/rXUt+FEMI7K7MDENGbPxRfiCY3zKq9TnL0pQ",
    ),
    Pattern(
        "github-token",
        "A token of GitHub, classic, of an app or fine-grained.",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        matches(r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}"),
        "ghp_" + _ANY + _ANY[:6],
    ),
    Pattern(
        "gitlab-token",
        "A token of GitLab.",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
        matches(rf"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-{_SAFE}{{16,}}(?:\.{_SAFE}{{2,}})*"),
        "glpat-" + _ANY[:20],
    ),
    Pattern(
        "slack-token",
        "A token or a webhook of Slack.",
        ("xox", "xapp-", "hooks.slack.com/"),
        matches(
            r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}"
            r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"
        ),
        "xoxb-" + "123456789012-" + _ANY[:24],
    ),
    Pattern(
        "stripe-key",
        "A secret or restricted key of Stripe, or a webhook's.",
        ("k_live_", "k_test_", "whsec_"),
        matches(r"(?<![A-Za-z0-9])(?:[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,})"),
        "sk_live_" + _ANY[:24],
    ),
    _prefixed("anthropic-key", "A key of Anthropic.", "sk-ant-", f"{_SAFE}{{8,}}", "api03-" + _ANY),
    Pattern(
        "openai-key",
        "A key of OpenAI, or of the many who write theirs alike.",
        ("sk-",),
        matches(rf"{EDGE}sk-{_SAFE}{{20,}}+", finders.has_digit),
        "sk-proj-" + _ANY,
    ),
    Pattern(
        "google-key",
        "An API key, client secret or access token of Google.",
        ("aiza", "gocspx-", "ya29."),
        matches(rf"{EDGE}(?:AIza{_SAFE}{{35}}(?!{_SAFE})|GOCSPX-{_SAFE}{{20,}}|ya29\.{_SAFE}{{20,}})"),
        "AIza" + _ANY + _ANY[:5],
    ),
    _prefixed("npm-token", "A token of npm.", "npm_", f"{_LETTERS}{{30,}}", _ANY + _ANY[:6]),
    _prefixed("pypi-token", "A token of PyPI.", "pypi-AgE", f"{_SAFE}{{20,}}", "IcHlwaS5vcmc" + _ANY),
    _prefixed("huggingface-token", "A token of Hugging Face.", "hf_", f"{_LETTERS}{{30,}}", _ANY + _ANY[:4]),
    _prefixed(
        "sendgrid-key",
        "A key of SendGrid.",
        "SG.",
        f"{_SAFE}{{16,32}}+\\.{_SAFE}{{16,}}",
        f"{_ANY[:22]}.{_ANY}{_ANY[:13]}",
    ),
    Pattern(
        "twilio-key",
        "An API key of Twilio.",
        ("sk",),
        matches(r"(?<![A-Za-z0-9])SK[0-9a-f]{32}(?![0-9A-Za-z])"),
        "SK" + _HEX * 2,
    ),
    _prefixed("digitalocean-token", "A token of DigitalOcean.", "dop_v1_", "[0-9a-f]{60,}", _HEX * 4),
    _prefixed("vault-token", "A token of HashiCorp Vault.", "hvs.", f"{_SAFE}{{20,}}", _ANY),
    _prefixed("age-key", "A secret key of age.", "AGE-SECRET-KEY-1", "[A-Z0-9]{30,}", _ANY.upper() * 2),
    _prefixed("groq-key", "A key of Groq.", "gsk_", f"{_LETTERS}{{40,}}", _ANY + _ANY),
    _prefixed("linear-key", "A key of Linear.", "lin_api_", f"{_LETTERS}{{30,}}", _ANY + _ANY[:10]),
    _prefixed("atlassian-token", "A token of Atlassian.", "ATATT3", "[A-Za-z0-9_=-]{30,}", _ANY + _ANY),
    Pattern(
        "shopify-token",
        "A token of Shopify.",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        matches(r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
        "shpat_" + _HEX * 2,
    ),
    Pattern(
        "telegram-token",
        "The token of a Telegram bot.",
        (":aa",),
        matches(rf"(?<!\d)\d{{8,10}}:AA{_SAFE}{{33}}(?!{_SAFE})"),
        "123456789:AA" + _ANY + _ANY[:3],
    ),
    Pattern(
        "jwt",
        "A JSON Web Token.",
        ("eyj",),
        matches(rf"{EDGE}eyJ{_SAFE}{{8,}}+\.{_SAFE}{{8,}}+(?:\.{_SAFE}*+)?"),
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJhbGljZSJ9." + _ANY,
    ),
    Pattern(
        "authorization",
        "What a request is authorised by.",
        ("authorization", "bearer"),
        matches(
            r"""(?i)(?:authorization\\{0,4}["']?\s{0,4}[:=]\s{0,4}\\{0,4}["']?(?:(?:bearer|basic|token|digest|apikey)"""
            r"""\s{1,4})?|(?<![a-z])bearer\s{1,4}(?=[\w.~+/=-]{16}))(?P<secret>[^\s"',;<>\\`()\[\]{}]{6,})""",
            finders.is_sent,
        ),
        "Authorization: Bearer " + _ANY,
    ),
    Pattern(
        "cookie",
        "The cookies of a request or an answer.",
        ("cookie:", 'cookie":', "cookie\\"),
        matches(
            r"""(?i)cookie\\{0,4}["']?:\s{0,4}\\{0,4}["']?(?P<secret>[\w.-]{1,64}=[^\s"'\\]{4,}(?:; ?[^\s"'\\]+)*)"""
        ),
        "Cookie: session=" + _HEX,
    ),
    Pattern(
        "connection-string",
        "The password in the address of a database, queue or mail server.",
        ("://",),
        matches(rf"(?i)(?<![a-z]){_SERVERS}://{_USER}:{_PASSWORD}", finders.is_password),
        "postgresql+asyncpg://app:hunter2@db.internal:5432/app",
    ),
    Pattern(
        "url-password",
        "The password in any other address.",
        ("://",),
        matches(rf"""://{_USER}:(?P<secret>[^\s/"'<>`]{{1,256}})(?=@)""", finders.is_password),
        "https://deploy:s3cret@git.example.com/app.git",
    ),
    Pattern(
        "command-credential",
        "A password given to a command: curl -u, mysql -p, sshpass -p, docker login -p.",
        ("curl", "mysql", "sshpass", "docker login"),
        matches(
            r"(?:\bcurl\b[^\n;|&]{0,200}?\s(?:-u|--user)\s{0,3}[\"']?[\w.@+-]{1,64}:"
            r"|\bmysql\w{0,10}\b[^\n]{0,200}?\s-p(?=\S)|\bsshpass\s+-p\s{0,3}|\bdocker login\b[^\n]{0,200}?\s-p\s{1,3})"
            r"[\"']?(?P<secret>[^\s\"']{4,})",
            finders.is_given,
        ),
        "curl -u admin:hunter2 https://example.com",
    ),
    Pattern(
        CREDENTIAL,
        'A value behind a name that holds one: password=…, "api_key": "…", token: ….',
        ("pass", "pwd", "secret", "token", "key", "auth"),
        finders.assigned,
        '"password": "hunter2"',
    ),
    Pattern(
        "env-value",
        "A variable of the environment that is called after a secret.",
        ("_key", "_pass", "_auth", "_pat", "_dsn", "_credentials", "_salt"),
        finders.variables,
        "export STRIPE_KEY=hunter22",
    ),
    Pattern(
        "flag-value",
        "A value after a flag of a command, or in quotes as SQL writes it.",
        ("pass", "pwd", "secret", "token", "key", "identified by"),
        finders.flags,
        "deploy --token hunter22",
    ),
    Pattern(
        "told-credential",
        "A secret in a sentence: the password is ….",
        ("pass", "pwd", "secret", "token", "key"),
        finders.told,
        "The wifi password for the office is hunter22",
    ),
    Pattern(
        "random-token",
        "A long token drawn at random, right behind a word such as key or token.",
        ("key", "token", "secret", "password", "credential", "auth", "bearer"),
        finders.random_tokens,
        "use the key " + _ANY,
    ),
)
_ORDER = {pattern.name: place for place, pattern in enumerate(PATTERNS)}
