"""Values as a person writes them into a setting, and what is wrong with one that cannot be used."""

import re
from collections.abc import Callable
from pathlib import Path


def flag(text: str) -> bool:
    """Yes or no."""
    value = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in value:
        raise ValueError("must be true or false")
    return value[text.lower()]


def number(low: int, high: int) -> Callable[[str], int]:
    """A whole number within bounds."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not low <= number <= high:
            raise ValueError(f"must be between {low} and {high}")
        return number

    return read


def folder(text: str) -> Path:
    """A folder as a person writes it."""
    try:
        # A client's configuration file has no shell that would know what ~ is.
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError("names the home of a user that does not exist") from error


def words(text: str) -> tuple[str, ...]:
    """Words, separated by blanks or commas."""
    return tuple(word for word in text.replace(",", " ").split() if word)


def endpoint(text: str) -> str:
    """An address to ask, without a slash at its end."""
    if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", text):
        raise ValueError("must be an address such as https://llm.example/v1, without a user, query or fragment")
    return text.rstrip("/")


def places(text: str) -> tuple[str, ...]:
    """Hosts, some with their port."""
    found = words(text.lower())
    if wrong := [place for place in found if not re.fullmatch(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?", place)]:
        raise ValueError(f"must be hosts such as wiki.internal or 127.0.0.1:8080; {wrong[0]} is none")
    return found


def origin(text: str) -> str:
    """An address without a path."""
    if not re.fullmatch(r"https?://[a-z0-9.-]+(:\d{1,5})?/?", text):
        raise ValueError("must be an address such as https://memory.example, without a path, in small letters")
    return text.rstrip("/")


def one_of(*values: str) -> Callable[[str], str]:
    """One of these words."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"must be one of {', '.join(values)}")
        return text

    return read
