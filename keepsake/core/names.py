"""Who and what a text names, found by rules: people, names, code, files, addresses, tickets and versions."""

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Kind = Literal["person", "name", "code", "file", "url", "email", "ticket", "version"]


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity where a text first names it; `text[start:end]` is its name as written, without a possessive."""

    name: str
    kind: Kind
    start: int
    end: int
    role: Literal["speaker", "named"] = "named"


@dataclass(frozen=True, slots=True)
class Token:
    """A run between blanks, without the punctuation around it."""

    core: str
    start: int
    opens: bool  # begins a sentence, so its capital says nothing
    joined: bool  # nothing but a blank before it: it may go on with a name
    shut: bool  # punctuation follows it
    before: str
    after: str


#: Words whose capital never makes a name, wherever they stand.
NEVER = frozenset(
    """a about above after again ah all also although always am an and any anything apr april are as at aug august
    autumn aw aww be because been before being best both btw but by bye can cannot cheers co-authored-by cool could day
    dear dec december did do does dr each eg eight either etc even ever every everyone everything false feb february few
    five fixme for four fri friday from fyi get go gonna good got gotta had haha has have having he hello her here hers
    hey hi his hmm how however i id ids ie if in into is it its jan january jr jul july jun june just last lemme lets
    like lol lots love madam many mar march may maybe me might mine miss mon monday more most mr mrs ms much must my nb
    neither never next nine no none nope nor not note nothing nov november now null oct october of off oh ok okay omg on
    once one only or other others our ours out over own per please pm pr prof prs ps same sat saturday sep sept
    september seven shall she should signed-off-by since sir six so some something soon spring sr still such summer sun
    sunday sure tbd ten than thank thanks that the their theirs them then there therefore these they this those though
    three through thu thur thurs thursday thus to today todo together tomorrow tonight too true ttyl tue tues tuesday
    two under until up upon us very vs wanna was way we wed wednesday well were what when whenever where whether which
    while who whoever whom whose why will winter wip with within without woah would wow yay yeah yep yes yesterday yet
    you your yours yup""".split()
)
#: Words that often begin a sentence, where a capital says nothing.
STARTERS = frozenset(
    """accept add adjust agree allow almost already alright analyze another answer anytime anyway appreciate avoid
    awesome bad basic believe bet better between big block books build bump call capture care catch challenges change
    chat check clarify class clean clear close code come commit company config configure congrats consider convert copy
    correct count create current custom customer data database days debug decision default define delete demonstrate
    depend deploy details detect different difficult display docs don done drop easy edit email emit encourage enjoy
    enough ensure entry error escape events example exclude expand expect explain export expose extra extract feature
    feel felt fetch fewer file find finish first fix follow force found friends full function further gather generate
    glad gotcha great group guess ha half handle hang happy hard haven heard help hide hold home honor hope huge idea
    ignore import improve include increase insert inside inspect install instead issue join keep kids kind know lack
    large later legacy let life limit link list little load log long look lost lower mail main make man map match merge
    met method migrate mind minor money move music name nature new nice normalize number office old oops open optimize
    option order output overall override owner parse pass path people perhaps pick pin place plan plus point polish port
    prefer preserve pretty prevent print process progress project promote proud provide publish pull push put query
    question quick quite raise ran rather raw read reason recent record reduce ref refactor register regular reject
    release reload remember remind remove rename repeat replace report require reset resolve respect rest restore result
    return reuse revert review rewrite right run said say search second see seem seen send separate server set setup
    share shift short show similar simple skip small someone sometimes sorry sort sound speak split stand start state
    stay stop store strip strong structure success suggest super support switch sync system take talk team tell test
    text things think third time took toward track trigger trip try turn tweak type typo understand undo unit unless
    unlike update upgrade use user validate value vendor verify version wait want warn watch welcome went whoa wish work
    wrap write""".split()
)
#: Endings of words that begin sentences more often than they are names.
_ENDINGS = re.compile(r"(?:[a-z]{2}ing|[a-z]{2}ed|ly|tions?|ness|ments?|able|ful|ous|ives?|ers|ies|sts|ity|als?)$")
_PERSON_VERBS = frozenset(
    """agreed approved asked asks believes bought called decided emailed enjoys feels felt hates hopes joined knows
    leads left liked likes lives loved loves manages married met moved owns plans preferred prefers promised reported
    reviewed said says suggested tells thinks thought told visited wanted wants went wishes worked wrote""".split()
)
#: What stands behind a name that begins a sentence, and seldom behind another word.
_NAMED_BY = _PERSON_VERBS | frozenset(
    "and or & is was has had will can could should may must does did keeps uses needs runs".split()
)
_VOCATIVES = frozenset("hey hi hello dear thanks bye mr mrs ms miss dr prof sir madam".split())
#: Given names frequent enough to tell a person without other signs.
_GIVEN = frozenset(
    """aaron adam ahmed alex alexander alice amy ana andrea andrew angela anna anne anthony antonio ben benjamin bob
    brian carlos carol caroline catherine charles chris christina christopher daniel david diana edward elena elizabeth
    emily emma eric fatima frank george hannah helen henry ian isabel ivan jack jacob james jane jean jennifer jessica
    jim joe john jonathan jose joseph joshua juan julia julian julie karen kate katherine kelly ken kevin kim laura lee
    leo linda lisa lucy luke margaret maria mark marta martin mary matt matthew michael michelle mike mohammed nancy
    nathan nicole nina noah oliver olivia omar oscar patrick paul peter priya rachel rebecca richard robert ryan sam
    samantha samuel sara sarah scott sean simon sofia sophie stephen steve steven susan thomas tim tom victoria wei
    william""".split()
)
_LINKS = frozenset("of the de da del della di du la le van von der den ter bin ibn al el".split())
_BRANDS = frozenset(
    """airbnb cloudflare devops ebay fedex github gitlab icloud ios ipad iphone javascript linkedin macbook macos
    mongodb mysql openai paypal playstation postgresql powerpoint tiktok typescript whatsapp wordpress
    youtube""".split()
)
_FILE = re.compile(
    r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)*[\w.@+-]*\.(?:py|pyi|js|jsx|ts|tsx|css|html?|md|rst|txt|json|jsonl|ya?ml|toml|ini|cfg"
    r"|conf|env|lock|sql|db|sqlite3?|csv|tsv|xml|svg|png|jpe?g|gif|pdf|docx?|xlsx?|sh|bash|rb|go|rs|java|kt|c|h|cc|cpp|hpp"
    r"|cs|php|swift|vue|ipynb|log|zip|gz|tar|whl|exe|dll|so|gitignore|editorconfig)"
)
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?|[\w.@+-]+(?:/[\w.@+-]+){2,}/?|\w:\\\S+|\w+/")
_NAMED_FILES = frozenset("Makefile Dockerfile Justfile README LICENSE CHANGELOG Procfile Gemfile Vagrantfile".split())
_URL = re.compile(r"(?:https?|ftp|ssh|file)://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}*]|\bwww\.[\w-]+\.[^\s<>\"'`]*[\w/]")
_DOMAIN = re.compile(r"(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|ai|app|edu|gov)(?:/\S*)?")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_TICKET = re.compile(r"(?:[\w.-]+/[\w.-]+)?#\d+|(?!(?:UTF|ISO|SHA|MD|GPT|COVID|MP|CP|IPV)-)[A-Z][A-Z0-9]{1,9}-\d+")
_VERSION = re.compile(
    r"v\d+(?:\.\d+)*(?:[-.]?(?:a|b|rc|alpha|beta|dev|post)[.-]?\d*)?|\d+(?:\.\d+){1,2}[-.]?[a-z]*[.-]?\d*"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\w*[^\W_]_\w+|__?\w+")
_CAMEL = re.compile(r"[^\W\d_]*[a-z0-9][A-Z]\w*")
_NO_CODE = re.compile(r"(?:Mc|Mac|Le|De|Di|La|Van|Von|Fitz)[A-Z][a-z]+$|[A-Z]{2}")
_TICKS = re.compile(r"```.*?(?:```|\Z)|`([^`\n]{1,60})`", re.DOTALL)
#: A longer run between blanks is no name; a word is looked for again only so many characters away.
_LONGEST, _NEAR = 200, 500
_RUN = re.compile(r"\S+")
_OPENING = "([{<\"'“‘«*_~¿¡-–—>|"
_CLOSING = ")]}>\"'”’».,;:!?…*_~-–—|"
_ENDS = '.!?:;…"”)-–—'
_POSSESSIVE = re.compile(r"['’][sS]$|(?<=s)['’]$")
_CUT = re.compile(r"[=(\[<>]")
_CONTRACTION = re.compile(r"['’](?:ll|re|ve|d|m|t)$", re.IGNORECASE)
_SPEAKER = re.compile(
    r"[\s>*_-]*(?:\[[^\]\n]{1,40}\]\s*|\(?\d[\d:. /T-]{3,24}(?:[ap]m)?\)?\s*-?\s*)?[*_]*"
    r"((?:[^\W\d_a-z][\w'’.-]*|user|assistant|system|human|agent|ai|bot)(?: [^\W\d_a-z][\w'’.-]*){0,2})"
    r"(?: ?\([^)\n]{1,30}\))?[*_]*:[*_]*(?=\s+\S)"
)
_LABELS = frozenset(
    """action agenda attention author background benefits bug caution changes context date decided environment exception
    expected features fixes goal hint important info input location notes observation outcome problem purpose re
    reference refs rule scope solution source status step subject summary tags task tip title topic where
    workaround""".split()
)


def entities(text: str) -> list[Mention]:
    """Find what a text names, each entity once, in order of appearance."""
    marked = [spoken] if (spoken := speaker(text)) else []
    if "`" in text or "://" in text or "www." in text:
        marked += _marked(text)
    found = [mention for mention in marked if mention.name]
    found += _read(_blanked(text, marked) if marked else text)
    first: dict[str, Mention] = {}
    for mention in sorted(found, key=lambda one: (one.role != "speaker", one.start)):
        if key := folded(mention.name):
            first.setdefault(key, mention)
    return sorted(first.values(), key=lambda one: one.start)


def speaker(text: str) -> Mention | None:
    """Tell who speaks in a line such as `Maria: I moved`, or None when nobody is named."""
    if ":" not in text[:120] or not (match := _SPEAKER.match(text)):
        return None
    name = match[1].rstrip(".")
    plain = name.lower()
    is_label = plain in _LABELS or plain.removesuffix("s") in _LABELS | STARTERS or plain.split()[0] in NEVER
    if is_label and plain not in ("user", "customer"):
        return None
    return Mention(name, "person", match.start(1), match.start(1) + len(name), "speaker")


def folded(name: str) -> str:
    """Write a name as it is compared: without case, accents, article, possessive and call brackets."""
    if not name.isascii():
        name = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    plain = " ".join(name.casefold().split()).removesuffix("()").removeprefix("the ")
    return _POSSESSIVE.sub("", plain).strip(" .,;:!?\"'")


def cut(query: str, known: Collection[str]) -> str:
    """Leave known people out of a question, so that its vector is about what was asked; never leaves nothing."""
    people = {folded(name) for name in known}
    people |= {part for name in people for part in name.split() if len(part) > 2}
    kept: list[str] = []
    dropped = False
    for token in _RUN.findall(query):
        core = token.strip(_OPENING + _CLOSING)
        plain = folded(core)
        is_word = core.islower() and (plain in NEVER or plain in STARTERS)
        if plain in people and not is_word:
            if dropped and kept and kept[-1].lower() in ("and", "or", "&"):
                kept.pop()
            dropped = True
            continue
        dropped = dropped and token.lower() in ("and", "or", "&")
        kept.append(token)
    left = [token for token in kept if (word := folded(token.strip(_OPENING + _CLOSING))) and word not in NEVER]
    return " ".join(kept) if left else query


def _blanked(text: str, marked: list[Mention]) -> str:
    """The text with commas for what was found already: places stay, and no name reaches over it."""
    parts: list[str] = []
    last = 0
    for one in sorted(marked, key=lambda one: one.start):
        if one.start >= last:
            parts += text[last : one.start], f" {',' * (one.end - one.start - 2)} "[: one.end - one.start]
            last = one.end
    return "".join(parts) + text[last:]


def _marked(text: str) -> Iterator[Mention]:
    """What stands in backticks, and addresses; a code block is passed over with an empty name."""
    for match in _TICKS.finditer(text):
        inner = (match[1] or "").strip()
        if not inner:
            yield Mention("", "code", match.start(), match.end())
            continue
        start = text.index(inner, match.start())
        kind = _written(inner, "") if " " not in inner else None
        yield Mention(inner, kind or "code", start, start + len(inner))
    for match in _URL.finditer(_TICKS.sub(lambda one: " " * len(one[0]), text)):
        yield Mention(match[0], "url", match.start(), match.end())


def _read(text: str) -> Iterator[Mention]:
    """Walk over the words, gathering capitals that stand together."""
    chain: list[Token] = []
    for token in _tokens("" if text.isupper() and len(text) > 12 else text):
        core = token.core
        kind = _written(core, token.before)
        if kind and not (kind == "name" or (chain and token.joined and _CAMEL.fullmatch(core) and core[0].isupper())):
            yield from _named(chain, text)
            chain = []
            name = core if kind != "code" else _POSSESSIVE.sub("", _CUT.split(core, maxsplit=1)[0])
            yield Mention(name, kind, token.start, token.start + len(name))
        elif core in _LINKS and chain and token.joined and _links(token, chain[-1]):
            chain.append(token)
        elif kind == "name" or core[0].isupper():
            if chain and not token.joined:
                yield from _named(chain, text)
                chain = []
            chain.append(token)
        if chain and (token.shut or chain[-1] is not token or len(chain) > 7):
            yield from _named(chain, text)
            chain = []
    yield from _named(chain, text)


def _links(token: Token, last: Token) -> bool:
    """Tell whether a small word holds a name together, as in Bank of America and Lord of the Rings."""
    if token.core == "the":
        return last.core == "of" and token.after[:1].isupper()
    return last.core not in _LINKS and (token.after[:1].isupper() or (token.core == "of" and token.after == "the"))


def _tokens(text: str) -> Iterator[Token]:
    """The words worth a look: with a capital, a digit or a sign in them, and links between names."""
    opens, shut, before, last = True, False, "", 0
    for match in _RUN.finditer(text):
        run = match[0]
        if run.islower() and run.isalpha() and run not in _LINKS:
            opens, shut, before = False, True, run
            continue
        start = match.start()
        if "\n" in text[last:start]:
            opens = shut = True
        core = run.lstrip(_OPENING) if not run.startswith("--") else run
        opens = opens or (len(core) < len(run) and run[0] in "\"“'‘")
        joined = not shut and len(core) == len(run)
        start += len(run) - len(core)
        core = core.rstrip(_CLOSING) if not core.endswith("()") else core
        tail = run[start - match.start() + len(core) :]
        is_initial = tail == "." and len(core) == 1 and core.isupper()
        last = match.end()
        if core and not core.isdigit():
            after = next(iter(text[last : last + 40].split()), "")
            yield Token(core, start, opens, joined, bool(tail) and not is_initial, before, after)
        before = core or before
        shut = not core or (bool(tail) and not is_initial)
        opens = (tail[:1] in _ENDS if tail and shut else False) if core else opens or run[0] in "-*•#>"


def _written(core: str, before: str) -> Kind | None:  # noqa: PLR0911  # a table of shapes, one line each
    """Tell what a word is by the signs in it, or None for a plain word."""
    if len(core) > _LONGEST or (core.isalpha() and (core.istitle() or core.isupper()) and core not in _NAMED_FILES):
        return None
    if "@" in core and _EMAIL.fullmatch(core):
        return "email"
    if ("-" in core or "#" in core) and _TICKET.fullmatch(core):
        return "ticket"
    if core[0] in "v0123456789" and _VERSION.fullmatch(core):
        is_sure = core[0] == "v" or core.count(".") > 1 or before[:1].isupper() or before in ("version", "release")
        return "version" if is_sure else None
    if core.startswith("--") and core[2:3].isalpha():
        return "code"
    if core in _NAMED_FILES:
        return "file"
    if ("." in core or "/" in core or "\\" in core) and (kind := _placed(core)):
        return kind
    head, bracket, _ = core.partition("(")
    if bracket and ("()" in core or "=" in core or "." in head or "_" in head) and head.isidentifier():
        return "code"
    if ("_" in core or "." in core) and _is_identifier(head or core):
        return "code"
    plain = _POSSESSIVE.sub("", core)
    if plain.lower() in _BRANDS:
        return "name"
    if _CAMEL.fullmatch(plain) and not plain[:-1].isupper():
        return "name" if _NO_CODE.match(plain) or len(plain) < 4 else "code"
    return None


def _placed(core: str) -> Kind | None:
    """Tell a file or an address by its dots and slashes."""
    if re.fullmatch(r"[A-Z]\w+\.(?:js|net|io|ai)", core):
        return "name"
    if _DOMAIN.fullmatch(core):
        return "url"
    is_path = _FILE.fullmatch(core) or (_PATH.fullmatch(core) and not re.fullmatch(r"[\d/]+", core))
    return "file" if is_path else None


def _is_identifier(core: str) -> bool:
    if not _IDENTIFIER.fullmatch(core) or not core.strip("_"):
        return False
    parts = core.split(".")
    is_typo = len(parts) == 2 and parts[1].istitle() and (parts[1].lower() in NEVER or parts[1].lower() in STARTERS)
    return not is_typo and any(len(part) > 2 for part in parts)


def _named(chain: list[Token], text: str) -> Iterator[Mention]:
    """Make one name of capitals that stand together, or none of those that mean nothing."""
    while chain and (chain[-1].core in _LINKS or _is_plain(chain[-1], text, is_alone=len(chain) == 1)):
        chain = chain[:-1]
    while chain and (chain[0].core in _LINKS or _is_plain(chain[0], text, is_alone=len(chain) == 1)):
        chain = chain[1:]
    middle = next((n for n, token in enumerate(chain) if token.core.lower() in NEVER and token.core not in _LINKS), 0)
    if middle:
        yield from _named(chain[:middle], text)
        yield from _named(chain[middle + 1 :], text)
    elif chain:
        start, last = chain[0].start, chain[-1]
        core = _CUT.split(_CONTRACTION.sub("", _POSSESSIVE.sub("", last.core)), maxsplit=1)[0]
        end = last.start + len(core)
        kind = _written(core, "") if len(chain) == 1 and core else None
        yield Mention(text[start:end], kind or _kind(chain, text), start, end)


def _is_plain(token: Token, text: str, is_alone: bool) -> bool:
    """Tell whether a capital means nothing: a common word, or the beginning of a sentence."""
    core = token.core.replace("’", "'")
    plain = _CONTRACTION.sub("", _POSSESSIVE.sub("", core))
    lower = plain.lower()
    following = text[(end := token.start + len(core)) : end + 1]
    if lower in NEVER or len(plain) < 2 or core.lower().endswith("n't") or ("-" in plain and following == ":"):
        return is_alone or len(plain) != 1 or not plain.isalpha() or following != "."
    if plain.isupper() and plain.isalpha():
        return len(plain) > 6 or lower in STARTERS
    if "/" in lower and not NEVER.isdisjoint(lower.split("/")):
        return True
    if not token.opens:
        return is_alone and lower in STARTERS and text.endswith(", ", 0, token.start)
    return _is_common(token, lower, is_alone) and not _recurs(f" {plain}", text, token.start)


def _recurs(word: str, text: str, at: int) -> bool:
    """Tell whether a word has its capital in the middle of a sentence, too."""
    pieces = text[max(0, at - _NEAR) : at + _NEAR].split(word)
    return any(
        (left[-1:].islower() or left[-1:] == ",") and not right[:1].isalpha() for left, right in pairwise(pieces)
    )


def _is_common(token: Token, lower: str, is_alone: bool) -> bool:
    """Tell whether the first word of a sentence is an everyday word, by lists, endings and what follows it."""
    if lower in _GIVEN:
        return False
    forms = (lower, lower.removesuffix("s"), lower.removesuffix("es"), lower.partition("-")[0])
    if not STARTERS.isdisjoint(forms):
        return is_alone or lower != "new"
    if is_alone:
        is_named = _POSSESSIVE.search(token.core) or token.after.lower().rstrip(_CLOSING) in _NAMED_BY
        return not is_named or bool(_ENDINGS.search(lower)) or "-" in lower
    return len(lower) > 4 and lower.endswith(("ed", "ing"))


def _kind(chain: list[Token], text: str) -> Kind:
    """Tell people from other names by their given names and by what stands around them."""
    first, last = chain[0], chain[-1]
    if _POSSESSIVE.sub("", first.core).lower() in _GIVEN:
        return "person"
    if first.core.isupper() and len(first.core) > 1:
        return "name"
    before = text[max(0, first.start - 20) : first.start].rstrip(" ,.").rpartition(" ")[2].lower().lstrip(_OPENING)
    after = last.start + len(last.core)
    is_called = text.endswith(", ", 0, first.start) and text[after : after + 1] in ("!", "?")
    is_called = is_called or (before in _VOCATIVES and len(chain) < 4)
    return "person" if is_called or (last.after.lower() in _PERSON_VERBS and not last.shut) else "name"
