"""What programs print, in whatever pieces it comes: the same text is kept, and no secret of it."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from keepsake.core.printed import LONGEST_LINE, Printed

SECRET = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEAx\n" * 20 + "-----END RSA PRIVATE KEY-----\n"
TEXT = f"first\nexport GITHUB_TOKEN={SECRET}\n{KEY}pass hunter22hunter22 on\nlast ünïcödé line without an end"


def kept(chunks: list[bytes], values: tuple[str, ...] = ()) -> list[str]:
    """Every piece that is kept of what comes in these chunks."""
    printed, pieces = Printed(values), list[str]()
    for chunk in chunks:
        printed.add(chunk)
        pieces.append(printed.ready())
    return [*pieces, printed.ready() + printed.last()]


@given(st.lists(st.integers(0, len(TEXT.encode())), max_size=12))
def test_no_piece_holds_a_secret_however_it_was_cut(cuts: list[int]) -> None:
    whole, places = TEXT.encode(), sorted({0, *cuts, len(TEXT.encode())})

    pieces = kept([whole[one:two] for one, two in pairwise(places)], ("hunter22hunter22",))
    told = "".join(pieces)

    assert SECRET[:12] not in told and "MIIEpAIB" not in told and "hunter22" not in told
    assert told.startswith("first\n") and told.endswith("last ünïcödé line without an end")
    assert "pass [redacted:env] on\n" in told


def test_a_line_without_an_end_is_kept_in_pieces() -> None:
    pieces = kept([b"x " * LONGEST_LINE] * 3)

    assert "".join(pieces) == "x " * LONGEST_LINE * 3
    assert all(len(piece) <= 2 * LONGEST_LINE for piece in pieces)


def test_what_is_no_text_is_told_of_and_not_kept() -> None:
    assert kept([bytes(range(128, 256)) * 10 + b"\n"])[0].endswith("that are no text]\n")
    assert "".join(kept([b"one\r\ntwo\rthree\x1b[2J\x00\n"])) == "one\ntwo\nthree\ufffd[2J\ufffd\n"
    assert "".join(kept(["ä".encode()[:1], "ä".encode()[1:]])) == "ä"
