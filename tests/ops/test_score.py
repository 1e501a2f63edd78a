"""The memory score, point by point as its seed says."""

import pytest

from keepsake.core.clock import DAY, SECOND
from keepsake.ops.score import broken_down
from keepsake.store.repos import Repo

NOW = 1_777_456_800_000_000


def repo(**given: object) -> Repo:
    return Repo(1, 1, "/srv/repo", 0, 0, **given)  # type: ignore[arg-type]  # whichever are under test


@pytest.mark.parametrize(
    ("held", "points"), [(0, 0), (1, 8), (49, 8), (50, 17), (199, 17), (200, 25), (318, 25), (10**6, 25)]
)
def test_coverage_grows_with_the_memories_from_the_repository(held: int, points: int) -> None:
    assert broken_down(repo(), held, NOW).coverage == points


@pytest.mark.parametrize(
    ("age", "points"),
    [
        (0, 15),
        (-DAY, 15),
        (7 * DAY, 15),
        (7 * DAY + SECOND, 10),
        (30 * DAY, 10),
        (30 * DAY + SECOND, 5),
        (90 * DAY, 5),
        (90 * DAY + SECOND, 0),
        (None, 0),
    ],
)
def test_freshness_fades_in_four_steps(age: int | None, points: int) -> None:
    synced_at = None if age is None else NOW - age

    assert broken_down(repo(last_synced_at=synced_at), 0, NOW).freshness == points


@pytest.mark.parametrize(("completed", "points"), [(0, 0), (1, 25), (9, 25)])
def test_ingestion_counts_once_a_sync_came_to_its_end(completed: int, points: int) -> None:
    assert broken_down(repo(completed=completed), 0, NOW).ingestion == points


@pytest.mark.parametrize(("state", "points"), [("pending", 0), ("running", 0), ("failed", 0), ("completed", 25)])
def test_synthesis_counts_when_it_is_completed(state: str, points: int) -> None:
    assert broken_down(repo(synthesis=state), 0, NOW).synthesis == points


@pytest.mark.parametrize(("files", "points"), [(0, 0), (1, 10), (6, 10)])
def test_a_folder_of_notes_counts(files: int, points: int) -> None:
    assert broken_down(repo(folder_files=files), 0, NOW).folder == points


def test_the_total_is_the_sum_and_can_be_a_hundred() -> None:
    best = repo(completed=1, synthesis="completed", last_synced_at=NOW, folder_files=6)

    assert broken_down(best, 318, NOW).model_dump() == {
        "total": 100,
        "ingestion": 25,
        "synthesis": 25,
        "coverage": 25,
        "freshness": 15,
        "folder": 10,
    }


def test_without_a_repository_there_is_nothing() -> None:
    assert broken_down(None, 0, NOW).total == 0
