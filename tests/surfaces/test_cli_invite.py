"""`keepsake user invite`, and the first account of a server that others reach."""

import json
import re

import httpx

from tests.surfaces.helpers import Terminal, keepsake, serving, typed

__all__ = ["keepsake"]


def test_people_are_invited_and_uninvited(keepsake: Terminal) -> None:
    said = keepsake("user", "invite", "ada", "--role", "editor", "--expires", "12h")
    made = keepsake("user", "invite", "bob", "--json").json
    listed = keepsake("user", "invitations")
    gone = keepsake("user", "uninvite", made["id"])
    again = keepsake("user", "uninvite", made["id"])

    link = re.search(r"http://127\.0\.0\.1:\d+/console/join/[\w-]{43}\n", said.out)
    assert link and "It cannot be shown again" in said.out
    assert [line.split()[1:3] for line in listed.out.splitlines()[1:]] == [["bob", "no"], ["ada", "editor"]]
    assert made["link"].rpartition("/")[2] not in listed.out
    assert (gone.code, again.code) == (0, 1)
    assert "No such invitation" in again.err
    assert keepsake("user", "invite", "eve", "--expires", "soon").code == 2
    assert keepsake("user", "invite", "eve", "--role", "king").code == 2


def test_a_server_that_others_reach_starts_with_an_invitation_and_offers_the_first_account(keepsake: Terminal) -> None:
    refused = typed(keepsake.folder, "serve", "--host", "0.0.0.0", "--port", "0")
    keepsake("user", "invite", "ada", "--role", "owner")
    with serving(keepsake.folder, "--json", host="0.0.0.0") as server:
        told = json.loads(server.welcome)
        link = told["set_up"]
        page = httpx.get(link, trust_env=False)
        closed = httpx.post(f"{link.partition('/console')[0]}/v1/operations/bank.list", trust_env=False)

    assert (refused.code, "keepsake user invite NAME --role owner" in refused.err) == (1, True)
    assert told["needs_key"] is True and told["console"].endswith("/console")
    assert page.status_code == 200 and "Create the first account" in page.text
    assert closed.status_code == 401
