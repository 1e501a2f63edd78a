"""How secrets are found in a text: by their own shape, by their armour, or by the name they stand behind.

Every finder reads a text once: a token begins where no letter of a token stands before it, and what may repeat is
possessive or bounded, so no text makes one slow.
"""

import re
import string
from collections.abc import Callable, Iterator

from keepsake.core import credentials
from keepsake.core.credentials import HOLDER, WORDS_OF_NAMES, compiled

Span = tuple[int, int]
Finder = Callable[[str], Iterator[Span]]
#: Shorter values are no secrets worth the name.
LEAST = 4
#: Begins a token; the letter of an escaped line break before it is none of it.
EDGE = r"(?:(?<![A-Za-z0-9_+/-])|(?<=\\[nrt]))"


def matches(regex: str, check: Callable[[re.Match[str]], bool] | None = None) -> Finder:
    """Find by a regular expression; its group `secret`, where it has one, is what goes."""

    def find(text: str) -> Iterator[Span]:
        pattern = compiled(regex)
        group = "secret" if "secret" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            if check is None or check(match):
                yield match.span(group)

    return find


def has_digit(match: re.Match[str]) -> bool:
    """Tells keys from names of CSS classes and the like."""
    return any(letter.isdigit() for letter in match[0])


def is_given(match: re.Match[str]) -> bool:
    """Whether a value is more than a placeholder."""
    return not credentials.is_placeholder(match["secret"])


def is_sent(match: re.Match[str]) -> bool:
    """Whether the value of a header is a credential."""
    value = match["secret"]
    return not credentials.is_placeholder(value) and (
        credentials.is_chosen(value) or (len(value) >= 16 and value.isalnum())
    )


def is_password(match: re.Match[str]) -> bool:
    """Whether what stands between `:` and `@` is a password: not a port before a path, not the user's name again."""
    value = match["secret"]
    is_port = compiled(r"\d{1,5}[/?#]").match(value) is not None
    return not (is_port or credentials.is_placeholder(value) or value == match["user"])


def blocks(text: str) -> Iterator[Span]:
    """Private blocks, nested ones whole, one without an end to the end of the text; not a tag that is only quoted."""
    depth = start = 0
    for tag in compiled(r"(?i)<(/?)private(?:\s[^<>]{0,100})?>").finditer(text):
        if text[max(0, tag.start() - 1) : tag.start()] == text[tag.end() : tag.end() + 1] == "`":
            continue
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield start, tag.end()
    if depth:
        yield start, len(text)


def private_keys(text: str) -> Iterator[Span]:
    """Private keys with their armour; one that is cut off goes as far as it looks like a key."""
    begun: re.Match[str] | None = None
    for line in compiled(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----").finditer(text):
        if line[1] == "BEGIN":
            if begun:
                yield _torn(text, begun)
            begun = line
        elif begun:
            yield begun.start(), line.end()
            begun = None
    if begun:
        yield _torn(text, begun)


def _torn(text: str, begun: re.Match[str]) -> Span:
    body = compiled(r"(?:\s*+(?:\\[nrt]|[A-Za-z0-9+/=]{16,}+|(?:Proc-Type|DEK-Info|Version|Comment):[^\n]*+))*+")
    match = body.match(text, begun.end())
    return begun.start(), match.end() if match else begun.end()


SHORT = 64
_LOWER = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
_QUOTED = (
    r"""\\{1,4}["'](?P<escaped>[^"'\\\n]{4,1000})\\{1,4}["']|"(?P<double>(?:[^"\\\n]|\\.){4,1000})\""""
    r"""|'(?P<single>(?:[^'\\\n]|\\.){4,1000})'|`(?P<ticked>[^`\n]{4,1000})`"""
)
#: A bare value ends before the next `name=` of a query, a connection string or a list of arguments.
_BARE = r"""(?P<bare>(?:[^\s"'`<>&;,\\]|[&;,](?![\w.-]{1,64}[=:]|[\s"'`<>]|$)|\\(?![nrt"'\\]))++)"""
_VALUE = f"(?:{_QUOTED}|{_BARE})"
_ENDS = r"""\d{0,2}\\{0,4}["'`\])*]{0,3}"""
_TYPE = r"(?:str|string|String|SecretStr|bytes|Optional\[str\]|&str|text)(?: \| None)?"
_IS = rf"\s{{0,4}}(?::\s{{0,4}}{_TYPE}\s{{0,4}}=(?!=)|:=|={{1,3}}>?|:(?![:/]))\*{{0,2}}\s{{0,8}}|\s{{1,4}}\|\s{{1,4}}"


def values(regex: str, check: Callable[[re.Match[str], str, bool], bool]) -> Finder:
    """Find values behind the names that hold secrets; `check` is told the value and whether it stood in quotes."""

    def find(text: str) -> Iterator[Span]:
        pattern, at = compiled(regex), 0
        for start in _names(text):
            match = pattern.match(text, start) if start >= at else None
            if match is None:
                continue
            group = match.lastgroup or "bare"
            value = match[group]
            if group == "bare" and not value.startswith("[redacted:"):
                value = value.rstrip(".,;:)]}")
            if len(value) >= LEAST and check(match, value, group != "bare") and _counts(match, value):
                yield match.start(group), match.start(group) + len(value)
                at = match.end()
            elif len(value) > SHORT:
                # What was no value may itself be a name, as in `secret token …`; a long one is not read twice.
                at = match.end()

    return find


def _counts(match: re.Match[str], value: str) -> bool:
    """Whether the name holds a secret and the value can be one."""
    is_number = credentials.is_number(value) and not (_is_pass(match) and value.isdigit())
    before = match.string[max(0, match.start() - 24) : match.start()]
    return not (is_number or credentials.is_placeholder(value)) and credentials.is_holder(match["name"], before)


def _names(text: str) -> list[int]:
    """Where a word stands that may make a name hold a secret."""
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few letters are two in lower case, and places must stay the same.
        lowered = text.translate(_LOWER)
    found = []
    for word in WORDS_OF_NAMES:
        at = lowered.find(word)
        while at >= 0:
            found.append(at)
            at = lowered.find(word, at + len(word))
    return sorted(found)


def _is_pass(match: re.Match[str]) -> bool:
    return compiled(r"(?i)pass|pwd|identified").match(match["name"]) is not None


def _is_assigned(match: re.Match[str], value: str, is_quoted: bool) -> bool:
    """Behind `=` nearly everything; behind a colon only what is no word of a sentence, or has the line to itself."""
    if not is_quoted and credentials.is_code(value):
        return False
    if "|" in match["op"]:
        return credentials.is_spoken(value)
    if is_quoted:
        return " " not in value or _is_pass(match) or credentials.is_chosen(value)
    if match["op"] == ">":
        return match.string.startswith("</", match.end())
    if _is_pass(match):
        return "=" in match["op"] or credentials.is_chosen(value) or _has_line(match)
    return "=" in match["op"] or credentials.is_told(value)


def _has_line(match: re.Match[str]) -> bool:
    text, start = match.string, max(0, match.start() - 80)
    lead = text[start : match.start()].rpartition("\n")
    is_first = bool(lead[1]) or start == 0
    ends = match.end() == len(text) or text[match.end()] in "\r\n"
    return is_first and ends and compiled(r"[\s>*\"'-]*[\w.-]*").fullmatch(lead[2]) is not None


def _is_flag(match: re.Match[str], value: str, is_quoted: bool) -> bool:
    """After a flag, or in quotes right after the word, as SQL writes it."""
    if value.startswith("-"):
        return False
    before = match.string[max(0, match.start() - 32) : match.start()]
    is_flag = "-" in before and compiled(r"(?<![\w-])--?[a-z-]*$").search(before) is not None
    return (is_flag and (is_quoted or not credentials.is_code(value))) or (is_quoted and _is_pass(match))


def _is_told(match: re.Match[str], value: str, is_quoted: bool) -> bool:
    if is_quoted:
        return " " not in value and (_is_pass(match) or credentials.is_chosen(value))
    return not value.isalpha() and credentials.is_spoken(value) and not credentials.is_code(value)


def random_tokens(text: str) -> Iterator[Span]:
    """Tokens drawn at random, on one line with a word that makes them a key."""
    keyish = compiled(r"(?i)(?<![a-z])(?:(?:api)?keys?|tokens?|secrets?|passwords?|credentials?|auth|bearer)(?![a-z])")
    spared = compiled(r"(?i)public|base64,|ssh-|integrity|checksum|fingerprint")
    for match in compiled(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}+={0,2}").finditer(text):
        before = text[max(0, match.start() - 48) : match.start()].rpartition("\n")[2]
        if keyish.search(before) and not spared.search(before) and credentials.is_random(match[0].rstrip("=")):
            yield match.span()


assigned = values(rf"(?i){HOLDER}{_ENDS}(?P<op>{_IS}|>){_VALUE}", _is_assigned)
flags = values(rf"(?i){HOLDER}\s{{1,4}}{_VALUE}", _is_flag)
told = values(
    rf"(?i){HOLDER}(?:(?:\s(?:for|of|to|on|in|at)(?:\s[\w./@-]{{1,30}}+){{1,4}}?)?"
    rf"\s(?:is|was|will be|to|as)\s{{1,3}}(?:now\s)?|\s){_VALUE}",
    _is_told,
)


def variables(text: str) -> Iterator[Span]:
    """Values of variables of the environment that are called after a secret."""
    named = r"(?<![A-Za-z0-9_])(?P<name>[A-Z][A-Z0-9]*+(?:_[A-Z0-9]+)*_(?:KEY|PASS|AUTH|PAT|DSN|CREDENTIALS|SALT)\d?)="
    for match in compiled(named + _VALUE).finditer(text):
        group = match.lastgroup or "bare"
        if _is_variable(match["name"], match[group], group != "bare"):
            yield match.span(group)


def _is_variable(name: str, value: str, is_quoted: bool) -> bool:
    if len(value) < LEAST or credentials.is_placeholder(value) or credentials.is_number(value):
        return False
    is_other = compiled(r"(?:PUBLIC|PRIMARY|FOREIGN|CACHE|SORT|PARTITION|HOT|ROW|HASH|MAX|NEXT)_").search(name)
    return is_other is None and (is_quoted or not credentials.is_code(value))
