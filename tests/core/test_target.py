"""What a check is pointed at: read strictly, and the same by us as by whoever connects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsake.core import target
from keepsake.core.target import Target


@pytest.mark.parametrize(
    ("kind", "text", "read"),
    [
        ("http", "https://Shop.Example/health?deep=1", Target("https", "shop.example", 443, "/health?deep=1")),
        ("http", "http://shop.example", Target("http", "shop.example", 80, "/")),
        ("http", "http://[2001:db8::1]:8080/x", Target("http", "2001:db8::1", 8080, "/x")),
        ("http", "http://[::1]/", Target("http", "::1", 80, "/")),
        ("http", "http://bücher.example/", Target("http", "xn--bcher-kva.example", 80, "/")),
        ("tcp", "mail.example:25", Target("tcp", "mail.example", 25)),
        ("postgres", "db.example", Target("postgresql", "db.example", 5432)),
        ("postgres", "postgresql://db.example:5433/shop", Target("postgresql", "db.example", 5433, "shop")),
        ("redis", "redis://[::1]", Target("redis", "::1", 6379)),
        ("dns", "shop.example.", Target("dns", "shop.example", 0)),
    ],
)
def test_an_address_is_read(kind: str, text: str, read: Target) -> None:
    assert target.parsed(kind, text) == read


@pytest.mark.parametrize(
    ("made", "authority"),
    [
        (Target("https", "shop.example", 443), "shop.example"),
        (Target("http", "shop.example", 8080), "shop.example:8080"),
        (Target("http", "::1", 80), "[::1]"),
    ],
)
def test_a_host_header_names_the_port_where_it_is_unusual(made: Target, authority: str) -> None:
    assert made.authority == authority


@given(st.sampled_from(sorted(target.SCHEMES)), st.text(max_size=60))
def test_whatever_is_given_is_read_or_refused_in_words(kind: str, text: str) -> None:
    try:
        read = target.parsed(kind, text)
    except ValueError as error:
        assert str(error).startswith("must ")
    else:
        assert read.host
        assert not set(" @/\\?#\r\n\t") & set(read.host)


@given(st.sampled_from(["http", "postgres", "redis"]), st.text("abc:@/\\?#[].%0123 ", max_size=40))
def test_no_address_carries_credentials(kind: str, text: str) -> None:
    scheme = target.SCHEMES[kind][0]
    try:
        read = target.parsed(kind, f"{scheme}://{text}")
    except ValueError:
        return
    assert "@" not in text.partition("/")[0].partition("?")[0]
    assert "@" not in read.host
