"""What a bank may be called; apart from the models, because settings are read before pydantic is loaded."""

LONGEST = 128
#: Stands where a name might: the bank of the project of the folder that a server is started in. No bank is called so.
HERE = "."
#: The same for a JSON Schema, without what some engines of patterns lack.
PATTERN = r"^\.?[^\s./\\\x00-\x1f\x7f-\x9f]((\.?[^./\\\x00-\x1f\x7f-\x9f])*\.?[^\s./\\\x00-\x1f\x7f-\x9f])?\.?$"


def checked(name: str) -> str:
    """Refuse a name that could mean a place in a path, or that nobody could type."""
    told = name.removeprefix(".").removesuffix(".")
    if not told or any(end != end.strip() for end in (name, told)):
        raise ValueError("must not be blank or a dot, or begin or end with a blank")
    if ".." in name or any(letter in "/\\" or ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in name):
        raise ValueError("must not contain '/', '\\', '..' or control characters")
    if len(name) > LONGEST:
        raise ValueError(f"must have at most {LONGEST} characters")
    return name
