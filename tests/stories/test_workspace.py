"""One project, many dialects: what an editor saves in its workspace every other agent finds, and the reverse."""

from pathlib import Path

from tests.surfaces import serving
from tests.surfaces.serving import Client, called, request
from tests.surfaces.xerotiering import OWNER, place, result, structure

SAID = "Ada moved the nightly export to Rotterdam. It runs at three."


def test_a_workspace_is_the_same_bank_for_everyone(tmp_path: Path) -> None:
    with place(tmp_path, worker="true") as here:
        here.make("export")
        bearer = {"Authorization": f"Bearer {OWNER}"}
        editor = here.client(here.key("editor", banks=["export"]), "export").session()
        hindsight = Client(f"{here.address}/mcp/export/", bearer)
        keepsake = Client(f"{here.address}/keepsake/mcp", bearer | {"X-Bank-Id": "export"})
        kiro = Client(f"{here.address}/kiro/mcp", bearer)

        saved = structure(editor.post(called("xerotier.memory.save", {"content": SAID})))
        decided = structure(
            editor.post(called("xerotier.intelligence.track_decision", {"title": "Exports are kept for 90 days"}, 2))
        )["decision"]
        structure(hindsight.post(called("retain", {"content": "The export writes Parquet files."})))
        keepsake.post(called("remember", {"content": "The export bucket is named cold-storage."}))

        for client, tool, arguments in (
            (hindsight, "recall", {"query": "nightly export Rotterdam"}),
            (keepsake, "recall", {"query": "nightly export Rotterdam"}),
            (kiro, "search", {"query": "Rotterdam", "project": "export"}),
        ):
            assert "Rotterdam" in client.post(called(tool, arguments)).text
        assert "90 days" in hindsight.post(called("recall", {"query": "how long are exports kept"})).text
        for query, expected in (("Parquet", "Parquet files"), ("bucket", "cold-storage")):
            found = structure(editor.post(called("xerotier.memory.search", {"query": query}, query)))["results"]
            assert expected in found[0]["content"]

        # The background takes nothing apart, and the names stay.
        serving.until(lambda: here.run("bank.stats", bank="export")["unsharpened"] == 0, 60)
        whole = result(editor.post(request("resources/read", {"uri": saved["uri"]}, 7)))["contents"][0]["text"]
        again = structure(editor.post(called("xerotier.memory.recall", {"query": "nightly export"}, 8)))["results"]
        brief = result(editor.post(request("prompts/get", {"name": "brief"}, 9)))["messages"][0]["content"]["text"]
        assert SAID in whole
        assert [one["content"] for one in again if one["slug"] == saved["slug"]] == [SAID]
        assert "Exports are kept for 90 days" in brief and decided["id"] in brief

        # What one forgets, all forget.
        here.run("memory.forget", bank="export", id=saved["memory_id"])
        gone = editor.post(request("resources/read", {"uri": saved["uri"]}, 10))
        assert "Rotterdam" not in editor.post(called("xerotier.memory.search", {"query": "Rotterdam"}, 11)).text
        assert "error" in serving.messages(gone)[-1]
