"""OAuth clients, what people let them do, and the hashes of their codes and tokens."""

import json
from dataclasses import dataclass
from typing import Literal

from keepsake.core.clock import DAY
from keepsake.store.engine import Row, Tx

Kind = Literal["code", "access", "refresh"]


@dataclass(frozen=True, slots=True)
class Client:
    """A program that asks for access in someone's name."""

    org: int
    id: int
    client_id: str
    #: `registered`, or `document` for one that is known by its metadata document.
    kind: str
    name: str
    redirects: tuple[str, ...]
    #: How it proves at the token endpoint who it is.
    method: str
    #: The hash of its secret, where it has one.
    secret: str
    created_at: int
    read_at: int
    expires_at: int
    revoked_at: int | None = None

    def is_alive(self, now: int) -> bool:
        """Whether it may still ask."""
        return self.revoked_at is None and self.expires_at > now


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person lets a client do, until when."""

    org: int
    id: int
    person: int
    client: int
    scopes: frozenset[str]
    #: Ids of banks; None means every bank of the person.
    banks: tuple[int, ...] | None
    resource: str
    created_at: int
    expires_at: int
    revoked_at: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A code or token, as far as it is stored."""

    org: int
    sha256: str
    kind: Kind
    grant_id: int
    scopes: frozenset[str]
    created_at: int
    expires_at: int
    used_at: int | None = None
    redirect: str = ""
    challenge: str = ""


_CLIENT = "org, id, client_id, kind, name, redirects, method, secret, created_at, read_at, expires_at, revoked_at"
_GRANT = "org, id, person, client, scopes, banks, resource, created_at, expires_at, revoked_at"
_TOKEN = "org, sha256, kind, grant_id, scopes, created_at, expires_at, used_at, redirect, challenge"


def _client(row: Row) -> Client:
    return Client(**{**row, "redirects": tuple(json.loads(row["redirects"]))})


def _grant(row: Row) -> Grant:
    banks = json.loads(row["banks"])
    read = {"scopes": frozenset(json.loads(row["scopes"])), "banks": None if banks is None else tuple(banks)}
    return Grant(**{**row, **read})


def _token(row: Row) -> Token:
    return Token(**{**row, "scopes": frozenset(json.loads(row["scopes"]))})


async def put_client(tx: Tx, client: Client) -> None:
    """Write a client, or what its document says now; who was revoked stays so."""
    await tx.run(
        f"INSERT INTO oauth_clients ({_CLIENT}) VALUES (:org, :id, :client_id, :kind, :name, :redirects, :method,"
        " :secret, :created_at, :read_at, :expires_at, NULL) ON CONFLICT (org, client_id) DO UPDATE SET"
        " name = excluded.name, redirects = excluded.redirects, read_at = excluded.read_at,"
        " expires_at = excluded.expires_at",
        org=client.org,
        id=client.id,
        client_id=client.client_id,
        kind=client.kind,
        name=client.name,
        redirects=json.dumps(client.redirects),
        method=client.method,
        secret=client.secret,
        created_at=client.created_at,
        read_at=client.read_at,
        expires_at=client.expires_at,
    )


async def client(tx: Tx, org: int, client_id: str) -> Client | None:
    """A client by what it calls itself."""
    row = await tx.one(
        f"SELECT {_CLIENT} FROM oauth_clients WHERE org = :org AND client_id = :client_id", org=org, client_id=client_id
    )
    return _client(row) if row else None


async def client_of(tx: Tx, grant: Grant) -> Client | None:
    """The client that a grant was given to."""
    row = await tx.one(
        f"SELECT {_CLIENT} FROM oauth_clients WHERE org = :org AND id = :id", org=grant.org, id=grant.client
    )
    return _client(row) if row else None


async def clients(tx: Tx, org: int) -> list[Client]:
    """Every client, newest first."""
    rows = await tx.all(f"SELECT {_CLIENT} FROM oauth_clients WHERE org = :org ORDER BY id DESC", org=org)
    return [_client(row) for row in rows]


_UNUSED = "NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.org = c.org AND g.client = c.id)"


async def unused(tx: Tx, org: int, now: int) -> int:
    """Forget registrations that have ended unused, and count those that nobody has consented to yet."""
    await forget_clients(tx, org, now)
    row = await tx.one(f"SELECT count(*) AS n FROM oauth_clients c WHERE c.org = :org AND {_UNUSED}", org=org)
    return int(row["n"]) if row else 0


async def forget_clients(tx: Tx, org: int, now: int) -> int:
    """Forget registrations that have ended unused; tells how many."""
    return await tx.run(
        "DELETE FROM oauth_clients WHERE org = :org AND id IN (SELECT c.id FROM oauth_clients c WHERE c.org = :org"
        f" AND c.expires_at < :now AND c.revoked_at IS NULL AND {_UNUSED})",
        org=org,
        now=now,
    )


async def keep_client(tx: Tx, org: int, id: int, until: int) -> None:
    """Let a client that is used live on."""
    await tx.run(
        "UPDATE oauth_clients SET expires_at = :until WHERE org = :org AND id = :id AND expires_at < :until",
        org=org,
        id=id,
        until=until,
    )


async def revoke_client(tx: Tx, org: int, client_id: str, at: int) -> int | None:
    """Shut a client out; None when there is none that was let in."""
    row = await tx.one(
        "UPDATE oauth_clients SET revoked_at = :at WHERE org = :org AND client_id = :client_id AND revoked_at IS NULL"
        " RETURNING id",
        org=org,
        client_id=client_id,
        at=at,
    )
    return int(row["id"]) if row else None


async def insert_grant(tx: Tx, grant: Grant) -> None:
    """Write what a person consented to."""
    await tx.run(
        f"INSERT INTO oauth_grants ({_GRANT}) VALUES (:org, :id, :person, :client, :scopes, :banks, :resource,"
        " :created_at, :expires_at, NULL)",
        org=grant.org,
        id=grant.id,
        person=grant.person,
        client=grant.client,
        scopes=json.dumps(sorted(grant.scopes)),
        banks=json.dumps(grant.banks),
        resource=grant.resource,
        created_at=grant.created_at,
        expires_at=grant.expires_at,
    )


async def grant(tx: Tx, org: int, id: int) -> Grant | None:
    """One grant."""
    row = await tx.one(f"SELECT {_GRANT} FROM oauth_grants WHERE org = :org AND id = :id", org=org, id=id)
    return _grant(row) if row else None


async def grants(tx: Tx, org: int) -> list[Grant]:
    """Every grant, newest first."""
    rows = await tx.all(f"SELECT {_GRANT} FROM oauth_grants WHERE org = :org ORDER BY id DESC", org=org)
    return [_grant(row) for row in rows]


async def revoke_grant(tx: Tx, org: int, id: int, at: int) -> bool:
    """End a grant with all its tokens; False when it had ended."""
    ended = await tx.run(
        "UPDATE oauth_grants SET revoked_at = :at WHERE org = :org AND id = :id AND revoked_at IS NULL",
        org=org,
        id=id,
        at=at,
    )
    return ended == 1


async def insert_token(tx: Tx, token: Token) -> None:
    """Write a code or token; what ended long ago goes."""
    await forget_tokens(tx, token.org, token.created_at)
    await tx.run(
        f"INSERT INTO oauth_tokens ({_TOKEN}) VALUES (:org, :sha256, :kind, :grant_id, :scopes, :created_at,"
        " :expires_at, NULL, :redirect, :challenge)",
        org=token.org,
        sha256=token.sha256,
        kind=token.kind,
        grant_id=token.grant_id,
        scopes=json.dumps(sorted(token.scopes)),
        created_at=token.created_at,
        expires_at=token.expires_at,
        redirect=token.redirect,
        challenge=token.challenge,
    )


async def forget_tokens(tx: Tx, org: int, now: int) -> int:
    """Forget codes and tokens that ended long ago; tells how many."""
    # A day longer, so that a code or token that is used again is recognised.
    return await tx.run("DELETE FROM oauth_tokens WHERE org = :org AND expires_at < :old", org=org, old=now - DAY)


async def use(tx: Tx, org: int, kind: Kind, sha256: str, now: int) -> Token | None:
    """Take a code or refresh token; of all who try, one gets it."""
    row = await tx.one(
        "UPDATE oauth_tokens SET used_at = :now WHERE org = :org AND sha256 = :sha256 AND kind = :kind"
        f" AND used_at IS NULL AND expires_at > :now RETURNING {_TOKEN}",
        org=org,
        sha256=sha256,
        kind=kind,
        now=now,
    )
    return _token(row) if row else None


async def token(tx: Tx, org: int, sha256: str) -> Token | None:
    """A code or token, whatever became of it."""
    row = await tx.one(
        f"SELECT {_TOKEN} FROM oauth_tokens WHERE org = :org AND sha256 = :sha256", org=org, sha256=sha256
    )
    return _token(row) if row else None


async def delete_token(tx: Tx, org: int, sha256: str) -> None:
    """End one token."""
    await tx.run("DELETE FROM oauth_tokens WHERE org = :org AND sha256 = :sha256", org=org, sha256=sha256)


@dataclass(frozen=True, slots=True)
class Held:
    """A valid access token with the grant it comes from."""

    token: Token
    grant: Grant


async def held(tx: Tx, sha256: str, now: int) -> Held | None:
    """An access token of whatever org, unless it, its grant or its client has ended."""
    row = await tx.one(
        "SELECT g.org AS org, g.id AS id, g.person AS person, g.client AS client, g.scopes AS scopes, g.banks AS banks,"
        " g.resource AS resource, g.created_at AS created_at, g.expires_at AS expires_at, g.revoked_at AS revoked_at,"
        " t.scopes AS token_scopes, t.created_at AS issued_at, t.expires_at AS token_end FROM oauth_tokens t"
        " JOIN oauth_grants g ON g.org = t.org AND g.id = t.grant_id"
        " JOIN oauth_clients c ON c.org = g.org AND c.id = g.client"
        " WHERE t.sha256 = :sha256 AND t.kind = 'access' AND t.expires_at > :now AND g.expires_at > :now"
        " AND g.revoked_at IS NULL AND c.revoked_at IS NULL",
        sha256=sha256,
        now=now,
    )
    if row is None:
        return None
    own = {name: value for name, value in row.items() if name not in ("token_scopes", "issued_at", "token_end")}
    scopes = frozenset(json.loads(row["token_scopes"]))
    found = _grant(own)
    return Held(
        Token(found.org, sha256, "access", found.id, scopes, row["issued_at"], row["token_end"]),
        found,
    )


async def bank_names(tx: Tx, org: int, banks: tuple[int, ...]) -> frozenset[str]:
    """Every name of these banks."""
    rows = await tx.all(
        "SELECT name FROM bank_names WHERE org = :org AND bank = ANY_INT(:banks)", org=org, banks=list(banks)
    )
    return frozenset(row["name"] for row in rows)
