"""What is derived is trusted like the least of its sources."""

import pytest

from keepsake.core import trust


@pytest.mark.parametrize(
    ("given", "lowest"),
    [
        (["owner", "agent"], "agent"),
        (["agent", "outside"], "outside"),
        (["owner", "outside", "agent"], "outside"),
        (["owner"], "owner"),
        (["outside", "unheard of"], "unheard of"),
    ],
)
def test_the_least_trusted_source_counts(given: list[str], lowest: str) -> None:
    assert trust.lowest(given) == trust.lowest(reversed(given)) == lowest
