"""The Porter stemmer (Porter, 1980), so that both stores index the same lexemes."""

import re
from functools import lru_cache

_STEP2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "abli": "able",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "logi": "log",
}
_STEP3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP4 = "ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic ou".split()


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Reduce a lower-case English word to its stem; other words come back unchanged."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    for step in (_plural, _past, _final_y, _double_suffix, _single_suffix, _long_suffix, _final_e):
        word = step(word)
    return word


def _shape(part: str) -> str:
    """Vowels and consonants with `y` after a consonant counted as a vowel."""
    out: list[str] = []
    for n, letter in enumerate(part):
        vowel = letter in "aeiou" or (letter == "y" and n > 0 and out[-1] == "c")
        out.append("v" if vowel else "c")
    return "".join(out)


def _measure(part: str) -> int:
    return len(re.findall("v+c+", _shape(part)))


def _has_vowel(part: str) -> bool:
    return "v" in _shape(part)


def _ends_cvc(part: str) -> bool:
    return _shape(part)[-3:] == "cvc" and part[-1] not in "wxy"


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        root = word.removesuffix(suffix)
        if root != word and _has_vowel(root):
            return _repaired(root)
    return word


def _repaired(root: str) -> str:
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if len(root) > 1 and root[-1] == root[-2] and _shape(root)[-1] == "c" and root[-1] not in "lsz":
        return root[:-1]
    return root + "e" if _measure(root) == 1 and _ends_cvc(root) else root


def _final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _swapped(word: str, table: dict[str, str]) -> str:
    for suffix, new in table.items():
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            return root + new if _measure(root) > 0 else word
    return word


def _double_suffix(word: str) -> str:
    return _swapped(word, _STEP2)


def _single_suffix(word: str) -> str:
    return _swapped(word, _STEP3)


def _long_suffix(word: str) -> str:
    for suffix in _STEP4:
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            if suffix == "ion" and not root.endswith(("s", "t")):
                return word
            return root if _measure(root) > 1 else word
    return word


def _final_e(word: str) -> str:
    if word.endswith("e"):
        root = word[:-1]
        if _measure(root) > 1 or (_measure(root) == 1 and not _ends_cvc(root)):
            word = root
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
