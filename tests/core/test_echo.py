"""What is the same text behind bullets, quotes, citations and dates, and what is not."""

import pytest

from keepsake.core import echo

FACT = "Deploys happen on Fridays."


@pytest.mark.parametrize(
    "line",
    [
        FACT,
        f"  {FACT}\n",
        f"- {FACT}",
        f"2. {FACT} [1]",
        f"> “{FACT}” [2][5]",
        f"* **{FACT}**",
        f"[2026-03-01] {FACT}",
        f"2026-03-01T10:00:00Z: {FACT}",
        f"{FACT} (2026-03-01)",
        f"{FACT} (id: 238471923847123)",
        f"[3] {FACT} (id 238471923847123, 2026-03-01)",
        "Deploys  happen\ton Fridays",
    ],
)
def test_decoration_makes_no_new_text(line: str) -> None:
    found = echo.repeated(line)

    assert found is not None
    assert found.is_known(lambda form: form == echo.plain(FACT))


@pytest.mark.parametrize(
    "text",
    [
        "Deploys happen on Mondays.",
        "Deploys happen on Fridays since 2026-03-01.",
        f"{FACT} The office is closed.",
        f"{FACT}\nThe office is closed.",
        f"Alice says: {FACT}",
    ],
)
def test_what_says_more_or_other_is_new(text: str) -> None:
    found = echo.repeated(text)

    assert found is not None
    assert not found.is_known(lambda form: form == echo.plain(FACT))


def test_lines_and_sentences_that_are_all_known_are_known_together() -> None:
    known = {echo.plain(one) for one in (FACT, "The office is closed.", "Marta leads.")}

    found = echo.repeated(f"- {FACT} The office is closed. [1]\n\n- Marta leads. [2]")

    assert found is not None
    assert found.is_known(known.__contains__)


def test_two_dates_are_two_texts() -> None:
    found = echo.repeated("The release is on 2026-03-02")

    assert found is not None
    assert not found.is_known(lambda form: form == echo.plain("The release is on 2026-03-01"))
