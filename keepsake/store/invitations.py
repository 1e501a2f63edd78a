"""One-time links by which people get an account or a new password; the link itself is only with them."""

from dataclasses import dataclass

from keepsake.store.engine import Row, Tx


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link as stored."""

    org: int
    id: int
    sha256: str
    #: Empty for the link that makes the first account.
    name: str
    #: Who gets a new password; None makes a new person.
    person: int | None
    role: str
    #: Where the role holds; 0 is the whole org.
    bank: int
    made_by: str
    #: The person and the key that made it, by which it is asked whether they still may.
    maker: int | None
    maker_key: int | None
    created_at: int
    expires_at: int
    used_at: int | None = None
    revoked_at: int | None = None


_NAMES = tuple(Invitation.__dataclass_fields__)
_COLUMNS = ", ".join(_NAMES)


def _invitation(row: Row) -> Invitation:
    return Invitation(**row)


async def insert(tx: Tx, invitation: Invitation) -> None:
    """Write a new link; an open one for the same name is good no more."""
    if invitation.name:
        await tx.run(
            "UPDATE invitations SET revoked_at = :now WHERE org = :org AND name = :name AND used_at IS NULL"
            " AND revoked_at IS NULL",
            org=invitation.org,
            name=invitation.name,
            now=invitation.created_at,
        )
    await tx.run(
        f"INSERT INTO invitations ({_COLUMNS}) VALUES ({', '.join(f':{name}' for name in _NAMES)})",
        **{name: getattr(invitation, name) for name in _NAMES},
    )


async def open_by_hash(tx: Tx, sha256: str, now: int) -> Invitation | None:
    """A link that can still be used, in whatever org."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM invitations WHERE sha256 = :sha256 AND used_at IS NULL AND revoked_at IS NULL"
        " AND expires_at > :now",
        sha256=sha256,
        now=now,
    )
    return _invitation(row) if row else None


async def any_open(tx: Tx, now: int) -> bool:
    """Whether someone has a link that can still be used."""
    row = await tx.one(
        "SELECT 1 AS one FROM invitations WHERE used_at IS NULL AND revoked_at IS NULL AND expires_at > :now LIMIT 1",
        now=now,
    )
    return row is not None


async def listed(tx: Tx, org: int, now: int) -> list[Invitation]:
    """The links that can still be used, newest first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM invitations WHERE org = :org AND used_at IS NULL AND revoked_at IS NULL"
        " AND expires_at > :now ORDER BY id DESC",
        org=org,
        now=now,
    )
    return [_invitation(row) for row in rows]


async def claim(tx: Tx, invitation: Invitation, now: int) -> bool:
    """Use a link up; of all who try, one gets it."""
    changed = await tx.run(
        "UPDATE invitations SET used_at = :now WHERE org = :org AND id = :id AND used_at IS NULL"
        " AND revoked_at IS NULL AND expires_at > :now",
        org=invitation.org,
        id=invitation.id,
        now=now,
    )
    return changed == 1


async def revoke(tx: Tx, org: int, id: int, now: int) -> bool:
    """Take a link back; False when it was used, taken back or past its time."""
    changed = await tx.run(
        "UPDATE invitations SET revoked_at = :now WHERE org = :org AND id = :id AND used_at IS NULL"
        " AND revoked_at IS NULL AND expires_at > :now",
        org=org,
        id=id,
        now=now,
    )
    return changed == 1
