"""Every operation at every door for everyone: what the declarations say happens, and a refusal changes nothing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from keepsake.core.operation import AnyOperation, Effect
from keepsake.surfaces.http import Site
from keepsake.tools import catalog, gate
from keepsake.tools.dialect import Prompt
from tests.auth.conftest import Json, opened
from tests.conftest import Database
from tests.isolation import asking
from tests.isolation.declared import REGISTRY, Call, Claim, expected
from tests.isolation.staging import SHARED, Door, Stage, doors, staged

NOWHERE = "nowhere"
#: What needs nothing: whoever comes as far as this was let in at the door.
NOTHING = REGISTRY["proposal.get"]
RPC = {"unauthenticated": -32001, "forbidden": -32003, "unknown": -32602}
STATUS = {"unauthenticated": 401, "forbidden": 403}


@dataclass(frozen=True, eq=False)
class Cell:
    """A call by someone, and how it should end."""

    who: str
    operation: AnyOperation
    #: None means REST.
    door: Door | None
    tool: str
    arguments: Json
    bank: str
    expected: str

    @property
    def column(self) -> str:
        return self.door.name if self.door else "rest"


def cells(who: str, claim: Claim, doors: list[Door]) -> Iterator[Cell]:
    """Every operation over REST, and every tool of every dialect, with those that all of them know."""
    for operation in REGISTRY.values():
        yield _cell(who, claim, operation, None, "")
    for door in doors:
        for name, tool in {**gate.TOOLS, **door.dialect.tools}.items():
            yield _cell(who, claim, tool.operation, door, name)


def _cell(who: str, claim: Claim, operation: AnyOperation, door: Door | None, name: str) -> Cell:
    word = f"cell-{len(who)}-{operation.id.replace('.', '-')}"

    def asked(bank: str) -> tuple[Json, str | None]:
        if door is None:
            return asking.over_rest(operation, word, bank)
        return asking.over_mcp({**gate.TOOLS, **door.dialect.tools}[name], word, bank)

    arguments, about = asked(SHARED)
    told = expected(claim, _call(operation, about, door, name), REGISTRY)
    if told != "admitted" or operation.effect is not Effect.DESTRUCTIVE:
        return Cell(who, operation, door, name, arguments, SHARED, told)
    # Whoever may destroy is let in, and finds nothing there.
    return Cell(who, operation, door, name, asked(NOWHERE)[0], NOWHERE, told)


def _call(operation: AnyOperation, about: str | None, door: Door | None, name: str) -> Call:
    if door is None:
        return Call(operation, about)
    dialect = door.dialect
    workspace = SHARED if dialect.workspace else None
    is_proposable = name in dialect.tools and dialect.tools[name].is_proposable
    return Call(operation, about, dialect.is_gated, dialect.admission, workspace, is_proposable)


async def outcome(stage: Stage, cell: Cell) -> str:
    """How a call ended, in the oracle's words; anything that fits none of them is told as it is."""
    if cell.door is None:
        answer = await stage.operation(cell.who, cell.operation.id, cell.arguments, cell.bank)
        return _over_rest(answer, cell.operation.id)
    params = {"name": cell.tool, "arguments": cell.arguments}
    return _over_mcp(await stage.mcp(cell.who, cell.door, "tools/call", params, cell.bank), cell.tool)


def _over_rest(answer: httpx.Response, id: str) -> str:
    error = answer.json().get("error", {}) if answer.status_code != 200 else {}
    code = error.get("code")
    known = {(401, "unauthenticated"): "unauthenticated", (403, "forbidden"): "forbidden"}
    if (answer.status_code, code) in known:
        return known[answer.status_code, str(code)]
    # What an operation itself looks for and does not find is another matter.
    if (answer.status_code, code) == (404, "unknown_tool") and f"Unknown operation: {id}." in error["message"]:
        return "unknown"
    is_answer = answer.status_code in (200, 400, 404, 409, 503) and code not in ("unauthenticated", "forbidden")
    return "admitted" if is_answer else f"{answer.status_code} {answer.text[:200]}"


def _over_mcp(answer: httpx.Response, name: str) -> str:
    error = answer.json().get("error")
    code = error["code"] if error else None
    for refusal, status in STATUS.items():
        if (answer.status_code, code) == (status, RPC[refusal]):
            return refusal
    if (answer.status_code, code) == (400, -32602) and "No such workspace" in error["message"]:
        return "unplaced"
    if answer.status_code == 200 and code == -32602 and error["message"].startswith(f"Unknown tool: {name}."):
        return "unknown"
    is_answer = answer.status_code == 200 and code in (None, -32602, -32600)
    return "admitted" if is_answer else f"{answer.status_code} {answer.text[:200]}"


async def test_every_cell_of_the_matrix_is_as_declared(database: Database) -> None:
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong: list[str] = []
    async with staged(database) as stage:
        for who, (_, claim) in stage.people.items():
            every = list(cells(who, claim, stage.doors))
            counts.update((who, cell.column, cell.expected) for cell in every)
            refused = [cell for cell in every if cell.expected != "admitted"]
            # Refusals first: nothing at all may have changed after them, and nothing of the other org after any.
            wrong += await _unlike(stage, refused, (1, 2))
            wrong += await _unlike(stage, [cell for cell in every if cell not in refused], (3 - claim.org,))

    print(f"\n{report(counts)}")
    assert not wrong, "\n".join(wrong)
    assert {who for who, _, _ in counts} == set(stage.people)


async def _unlike(stage: Stage, asked: list[Cell], kept: tuple[int, ...]) -> list[str]:
    """The calls that did not end as they should, and the orgs that were changed by any."""
    before = {org: await stage.fingerprint(org) for org in kept}
    wrong = []
    for cell in asked:
        if (found := await outcome(stage, cell)) != cell.expected:
            place = f"{cell.who}: {cell.operation.id} at {cell.column} as {cell.tool or 'itself'}"
            wrong.append(f"{place}: {cell.expected} expected, {found} found")
    changed = [org for org in kept if await stage.fingerprint(org) != before[org]]
    return wrong + [f"{asked[0].who}: org {org} was changed" for org in changed]


def report(counts: Counter[tuple[str, str, str]]) -> str:
    """A table of the cells: who by where, as admitted / forbidden / unknown / unauthenticated."""
    people, columns = dict.fromkeys(one for one, _, _ in counts), dict.fromkeys(one for _, one, _ in counts)
    kinds = ("admitted", "forbidden", "unknown", "unplaced", "unauthenticated")

    def told(who: str, column: str) -> str:
        return " / ".join(str(counts[who, column, kind]) for kind in kinds)

    rows = [f"| {who} | {' | '.join(told(who, column) for column in columns)} |" for who in people]
    head = f"| who ({' / '.join(kinds)}) | {' | '.join(columns)} |"
    return "\n".join([head, *rows, f"{counts.total()} cells"])


async def test_what_is_listed_is_what_may_be_called(database: Database) -> None:
    wrong: list[str] = []
    async with staged(database) as stage:
        valid = {who: claim for who, (_, claim) in stage.people.items() if claim.is_valid}
        for who, claim in valid.items():
            for door in stage.doors:
                answer = (await stage.mcp(who, door, "tools/list", {})).json()
                listed = {tool["name"] for tool in answer.get("result", {}).get("tools", [])}
                may = {name for name in door.dialect.tools if _is_offered(claim, door, name)}
                prompts = await stage.mcp(who, door, "prompts/list", {}) if door.dialect.prompts else None
                listed |= (
                    {one["name"] for one in prompts.json().get("result", {}).get("prompts", [])} if prompts else set()
                )
                may |= {name for name, one in door.dialect.prompts.items() if _is_told(claim, door, one)}
                if listed != may:
                    wrong.append(f"{who} at {door.name}: {sorted(listed ^ may)}")

    assert not wrong, "\n".join(wrong)


def _is_told(claim: Claim, door: Door, prompt: Prompt) -> bool:
    """A prompt is for whoever may read what it is made of, in the tier that it belongs to."""
    is_in = expected(claim, _call(NOTHING, None, door, ""), REGISTRY) == "admitted"
    return is_in and prompt.tool.operation.scopes <= claim.anywhere and (prompt.tier == "core" or claim.tier == "all")


def _is_offered(claim: Claim, door: Door, name: str) -> bool:
    operation = door.dialect.tools[name].operation
    if operation.effect is Effect.GATE:
        operation = REGISTRY["proposal.apply"]
    call = _call(operation, None, door, name)
    if expected(claim, call, REGISTRY) == "unplaced":
        return False
    # A listing tells what may be done somewhere; which bank is asked of the call.
    everywhere = None if claim.roles is None else dict.fromkeys([None], *claim.roles.values())
    return expected(replace(claim, banks=None, roles=everywhere), call, REGISTRY) == "admitted"


async def test_a_name_that_a_dialect_does_not_have_is_unknown_to_everyone(database: Database) -> None:
    wrong: list[str] = []
    async with staged(database) as stage:
        for who, (_, claim) in stage.people.items():
            for door in stage.doors:
                names = [id for id in REGISTRY if id not in {*door.dialect.tools, *door.dialect.aliases}]
                for name in names if who == "owner" else names[:1]:
                    params = {"name": name, "arguments": {}}
                    found = _over_mcp(await stage.mcp(who, door, "tools/call", params), name)
                    bare = expected(claim, _call(NOTHING, None, door, ""), REGISTRY)
                    if found != ("unknown" if bare == "admitted" else bare):
                        wrong.append(f"{who} at {door.name}: {name}: {found}")

    assert not wrong, "\n".join(wrong)


async def test_every_dialect_has_a_door(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        served = [door.dialect for door in doors(Site(app))]

    assert {one.name for one in served} == set(catalog.DIALECTS)
    assert all(catalog.DIALECTS[name] in served for name in catalog.DIALECTS)
