"""`keepsake bank alias`: a renamed project keeps its history."""

import os
import subprocess
from pathlib import Path

from tests.surfaces.helpers import Terminal, keepsake

__all__ = ["keepsake"]


def test_a_bank_is_renamed_and_found_under_both_names(keepsake: Terminal) -> None:
    keepsake("bank", "create", "old")
    keepsake("call", "retain", "--dialect", "hindsight", "--bank-id", "old", "--content", "Ada likes tea")

    told = keepsake("bank", "alias", "old", "new", "--rename")

    assert told.out == "The bank 'new'.\n  also called  old\n  projects     -\n"
    for name in ("old", "new"):
        assert len(keepsake("call", "list_memories", "--dialect", "hindsight", "--bank-id", name).json["memories"]) == 1
    assert [bank["name"] for bank in keepsake("bank", "list", "--json").json["banks"]] == ["new"]


def test_the_project_of_a_folder_is_given_to_a_bank(keepsake: Terminal, tmp_path: Path) -> None:
    repository = tmp_path / "gateway"
    repository.mkdir()
    for words in ("init -q", "remote add origin git@github.com:Acme/Gateway.git"):
        subprocess.run(["git", *words.split()], cwd=repository, check=True, env={"PATH": os.environ["PATH"]})
    keepsake("bank", "create", "api")

    named = keepsake("bank", "alias", "api", "--project", str(repository), "--json").json

    assert named == {"bank": "api", "aliases": [], "projects": ["git:github.com/acme/gateway"]}


def test_a_folder_that_names_its_bank_itself_is_not_given_away(keepsake: Terminal, tmp_path: Path) -> None:
    (tmp_path / ".keepsake").write_text("ours")
    keepsake("bank", "create", "api")

    ran = keepsake("bank", "alias", "api", "--project", str(tmp_path))

    assert ran.code == 2 and "belongs to the bank 'ours'; change that file" in ran.err


def test_nothing_to_call_it_is_wrong_usage(keepsake: Terminal) -> None:
    keepsake("bank", "create", "api")

    assert keepsake("bank", "alias", "api").code == 2
    assert keepsake("bank", "alias", "gone", "new").code == 1
