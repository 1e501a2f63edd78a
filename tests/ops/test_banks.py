"""Banks, documents and tags, on both stores."""

from typing import Any

import pytest

from keepsake.core.errors import BadInput, NotFound

pytestmark = pytest.mark.anyio


async def test_an_implied_bank_reads_as_empty_and_is_made_by_its_first_write(call: Any) -> None:
    before = await call("list_banks")
    empty = await call("get_bank")
    assert (await call("recall", query="anything"))["results"] == []
    assert (await call("list_tags"))["tags"] == []
    assert (await call("list_documents"))["documents"] == []

    await call("retain", content="First.")
    after = await call("list_banks")

    assert before == {"banks": []}
    assert (empty["bank_id"], "created_at" in empty) == ("default", False)
    assert [bank["bank_id"] for bank in after["banks"]] == ["default"]


async def test_a_bank_named_in_an_argument_must_exist(call: Any) -> None:
    for tool, arguments in (
        ("retain", {"content": "x"}),
        ("recall", {"query": "x"}),
        ("list_memories", {}),
        ("get_bank", {}),
        ("get_bank_stats", {}),
        ("list_tags", {}),
        ("update_bank", {"name": "x"}),
        ("clear_memories", {}),
        ("delete_bank", {}),
    ):
        with pytest.raises(NotFound, match="No bank 'nope'"):
            await call(tool, bank_id="nope", **arguments)

    assert (await call("list_banks"))["banks"] == []


async def test_creating_a_bank_that_exists_returns_it_unchanged(call: Any) -> None:
    await call("create_bank", bank_id="alice", name="Alice", mission="Help Alice.")

    again = await call("create_bank", bank_id="alice", name="Someone else")

    assert (again["name"], again["mission"]) == ("Alice", "Help Alice.")


async def test_updating_changes_only_what_is_given(call: Any) -> None:
    await call("create_bank", bank_id="alice", name="Alice", mission="Help Alice.")

    renamed = await call("update_bank", bank_id="alice", name="Alice B.")

    assert (renamed["name"], renamed["mission"]) == ("Alice B.", "Help Alice.")
    assert renamed["disposition"] == {"skepticism": 3, "literalism": 3, "empathy": 3}


async def test_statistics_are_true_at_once(call: Any) -> None:
    await call("retain", content="One.", tags=["a", "b"], document_id="d")
    await call("retain", content="Two.", tags=["a"])

    stats = await call("get_bank_stats")

    assert (stats["total_nodes"], stats["total_documents"], stats["total_tags"]) == (2, 1, 2)
    assert stats["nodes_by_fact_type"] == {"world": 2}


async def test_deleting_a_bank_takes_everything_with_it_and_its_name_is_free_again(call: Any) -> None:
    await call("create_bank", bank_id="gone")
    for n in range(3):
        await call("retain", content=f"Fact {n}", bank_id="gone", document_id=f"d{n}")

    receipt = await call("delete_bank", bank_id="gone")

    assert (receipt["deleted_memories"], receipt["deleted_documents"]) == (3, 3)
    assert (await call("list_banks"))["banks"] == []
    await call("create_bank", bank_id="gone")
    assert (await call("get_bank_stats", bank_id="gone"))["total_nodes"] == 0


@pytest.mark.parametrize("name", ["../etc", "a/b", "a\\b", "", " a", "a\nb", "x" * 129, "a\x00b"])
async def test_a_bank_name_that_could_be_a_path_or_worse_is_refused(call: Any, name: str) -> None:
    with pytest.raises(BadInput):
        await call("create_bank", bank_id=name)


async def test_tags_are_listed_most_used_first_and_by_glob(call: Any) -> None:
    await call("retain", content="One.", tags=["project:a", "user:x"])
    await call("retain", content="Two.", tags=["project:a", "project:b"])

    everything = await call("list_tags")
    projects = await call("list_tags", q="project:*", limit=1)

    assert everything["tags"][0] == {"tag": "project:a", "memories": 2}
    assert {tag["tag"] for tag in everything["tags"]} == {"project:a", "project:b", "user:x"}
    assert projects["tags"] == [{"tag": "project:a", "memories": 2}]


async def test_documents_are_listed_read_and_deleted_with_their_memories(call: Any) -> None:
    await call("retain", content="Version one of the plan.", document_id="plan")
    await call("retain", content="Version two of the plan.", document_id="plan", metadata={"by": "Marta"})
    await call("retain", content="Other.", document_id="other")

    listed = await call("list_documents", q="plan")
    plan = await call("get_document", document_id="plan")
    receipt = await call("delete_document", document_id="plan")

    assert [document["document_id"] for document in listed["documents"]] == ["plan"]
    assert (plan["text"], plan["metadata"], plan["memory_count"]) == ("Version two of the plan.", {"by": "Marta"}, 1)
    assert receipt["deleted_memories"] == 2
    assert (await call("recall", query="version of the plan"))["results"] == []
    with pytest.raises(NotFound):
        await call("get_document", document_id="plan")
    assert (await call("list_memories"))["total"] == 1
