"""What a name and a value tell about themselves: names that hold a secret, values that are none."""

import math
import re
from collections import Counter
from functools import cache
from itertools import pairwise

#: One of these is in every name that holds a secret.
WORDS_OF_NAMES = ("pass", "pwd", "secret", "token", "key", "auth", "identified by")
#: The word that makes a name hold one; what may follow it in the name is a number.
HOLDER = r"(?P<name>pass(?:word|wd|wort|phrase|code)?|pwd|secret|token|key|auth|identified by)"
#: What makes a key one that opens something.
_OPENING = (
    r"(?i)(?:api|access|secret|private|signing|encryption|auth|account|master|licen[cs]e|service|subscription|webhook"
    r"|deploy|session|client|shared|storage|app|admin|instance|bot)[ _-]?$"
)
#: Before `token`, these mean paging, counting or a language model's vocabulary.
_OTHER = (
    r"(?i)(?:next|page|continuation|sync|cursor|eos|bos|pad|unk|sep|cls|mask|stop|special|max|min|per|first|last"
    r"|previous|cancel|cancellation|progress|input|output|each|every|one)[ _-]?$"
)
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_MARKED = r"(?:\[redacted:[a-z0-9-]+\])+[.,;:)\]}]*"
_MASK = r"\*{3}|•{2}|x{4}|X{4}|…|\.{3}$"
_FILLED_IN = (
    r"(?i)<[^<>]*>?|\{\{?[^{}]*\}{0,2}|\$\{.*|\$\(?[a-z_]+\)?|\$\(?[A-Z_][A-Z0-9_]*\)?|%\(?\w+\)?[s%]?|\[[^\[\]]*\]?"
    r"|[*x•._#?=~-]+|(?:your|my|insert|enter|example|sample|dummy|fake|placeholder|replace)(?:[ _-][a-z _-]*)?"
    r"|[a-z_-]*[_-]here|(?:bearer|basic|token) \{env\.[a-z_]\w*\}"
)
#: A variable that is called after what it holds.
_NAME = (
    r"(?i:(?:[a-z]+[_-])*(?:password|passwd|passphrase|pass|pwd|secret|token|key))|[a-z]+(?:Password|Secret|Token|Key)"
)
_CODE = (
    r"[(\[{].*|!?[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)*[(\[].*|@\w+(?:\.\w+)*\(.*"
    r"|(?i:\w*(?:password|secret|token|key))(?:\.\w+)+"
    r"|!?(?:self|this|settings?|config|cfg|env|os|process|req|request|args|options|opts|ctx|context|app|user|data|params"
    r"|response|res|result|session|credentials?|creds|secrets|var|local|module|vault|import|props|state|event|body"
    r"|form|input|client|row|key|keys|account|auth)(?:\??\.[A-Za-z_]\w*)+"
)
_PATH = r"(?:~|\.{1,2})?(?:/[\w.@-]{1,31}){2,}/?|[A-Za-z]:\\.*"
_NUMBER = r"[\d.,:/%+-]+[kKmM]?"
_PUBLIC = r"(?:ssh-|ecdsa-)|AAAA[BCE][23]NzaC1|sha\d{3}[-:]|SHA256:"
#: Words that stand where a secret would: types, states, verbs of code.
WORDS = frozenset(
    """password passwd passphrase passcode secret token apikey value string text bytes bool boolean integer number
    object unknown null none undefined true false required optional missing invalid expired valid empty blank default
    here todo redacted hidden masked secretstr prompt await static const char void varchar self this changed rotated
    stored encrypted hashed plaintext random generated unset present absent needed given bearer basic inherit include
    enabled disabled never always from with your their that only must should which when""".split()
)
#: Begins like an algorithm, a standard or a runtime with its number.
_TECHNICAL = (
    r"(?i)(?:hs|rs|es|ps|sha|md|aes|base|utf|oauth|argon|bcrypt|scrypt|pbkdf|ed|x|http|ipv|iso|rfc|tls|ssl|python|node"
    r"|java|v)-?\d"
)
_MIXED = r"(?=[^\d]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{6,}"
_FILE = r".*\.[a-z]{2,5}"
_SIGN = r"[!@#$%^&*+=?~]"
_CASES = r"[a-z][A-Z]|[A-Z]{2}[a-z]|[a-z]\d|\d[A-Za-z]"


@cache
def compiled(regex: str) -> re.Pattern[str]:
    """A regular expression, made at its first use: a process that meets no secret compiles nothing."""
    return re.compile(regex, re.ASCII)


def holds_secret(name: str) -> bool:
    """Whether a key of a mapping is called after a secret: `db_password`, `X-Api-Key`, `Authorization`."""
    if name.lower() in _HEADERS:
        return True
    word = compiled(rf"(?i){HOLDER}\d{{0,2}}$").search(name[-40:])
    return word is not None and is_holder(word["name"], name[-40:][: word.start()])


def is_holder(word: str, before: str) -> bool:
    """Whether a word, after what stands before it, makes a name that holds a secret."""
    if word.lower() == "key":
        return compiled(_OPENING).search(before) is not None
    if word.lower() in ("pass", "auth"):
        return before.endswith(("_", "-")) or (word == "Pass" and before[-1:].islower())
    return compiled(_OTHER).search(before) is None


def is_placeholder(value: str) -> bool:
    """Whether a value only stands where a secret would: masks, variables, types, names, our own marks."""
    if "[redacted:" in value:
        return compiled(_MARKED).fullmatch(value) is not None
    is_shaped = any(compiled(shape).fullmatch(value) for shape in (_FILLED_IN, _NAME))
    return bool(is_shaped or value.lower() in WORDS or compiled(_MASK).search(value) or compiled(_PUBLIC).match(value))


def is_code(value: str) -> bool:
    """Whether a bare value is an expression or a path rather than a literal."""
    return bool(compiled(_CODE).fullmatch(value) or compiled(_PATH).fullmatch(value))


def is_number(value: str) -> bool:
    """Whether a value counts or dates something."""
    return compiled(_NUMBER).fullmatch(value) is not None


def is_chosen(value: str) -> bool:
    """Whether a value has a digit, a sign or a change of case, as plain words of a sentence have not."""
    return bool(compiled(_CASES).search(value) or compiled(_SIGN).search(value) or any(c.isdigit() for c in value))


def is_told(value: str) -> bool:
    """The same for what is often described: `256-bit`, `v2-only` and `HS256` are chosen by nobody."""
    parts = re.split(r"[-_./]", value)
    is_plain = all(compiled(rf"[A-Za-z]*|\d+[a-z]{{0,3}}|{_TECHNICAL[4:]}.*").fullmatch(part) for part in parts)
    return is_chosen(value) and not (is_plain and not compiled(r"[a-z][A-Z]").search(value))


def is_spoken(value: str) -> bool:
    """Whether a word in the middle of a sentence can only be a secret: letters and digits mixed in one part of it."""
    if is_number(value) or compiled(_FILE).fullmatch(value):
        return False
    parts = [part for part in re.split(r"[-_./:]", value) if not compiled(_TECHNICAL).match(part)]
    is_strange = compiled(_SIGN).search(value[1:-1]) is not None and any(c.isdigit() for c in value)
    return is_strange or any(compiled(_MIXED).fullmatch(part) for part in parts)


def is_random(token: str) -> bool:
    """Whether a long token looks drawn at random: all classes of letters, in no order, none frequent."""
    if not 20 <= len(token) <= 512 or compiled(_PUBLIC).match(token):
        return False
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in token if c.isalnum()]
    changes = sum(one != other for one, other in pairwise(kinds))
    return len(set(kinds)) == 3 and changes * 3 >= len(kinds) and entropy(token) >= 3.5


def entropy(token: str) -> float:
    """Bits per character."""
    counts = Counter(token).values()
    return -sum(n / len(token) * math.log2(n / len(token)) for n in counts)
