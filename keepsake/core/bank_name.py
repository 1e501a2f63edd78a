"""What a bank may be called; apart from the models, because settings are read before pydantic is loaded."""

LONGEST = 128


def checked(name: str) -> str:
    """Refuse a name that could mean a place in a path, or that nobody could type."""
    if not name.strip() or name != name.strip():
        raise ValueError("must not be blank or begin or end with a blank")
    if ".." in name or any(letter in "/\\" or ord(letter) < 32 for letter in name):
        raise ValueError("must not contain '/', '\\', '..' or control characters")
    if len(name) > LONGEST:
        raise ValueError(f"must have at most {LONGEST} characters")
    return name
