"""People and the roles they have."""

from dataclasses import dataclass

from keepsake.store.engine import Row, Tx

#: The bank of a role that holds in the whole org.
EVERYWHERE = 0


@dataclass(frozen=True, slots=True)
class User:
    """A person."""

    org: int
    id: int
    name: str
    created_at: int
    disabled_at: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A role that a person has."""

    person: int
    bank: int
    role: str


_COLUMNS = "org, id, name, created_at, disabled_at"


def _user(row: Row) -> User:
    return User(**row)


async def insert(tx: Tx, user: User) -> bool:
    """Write a new person; False when the name is taken."""
    made = await tx.one(
        f"INSERT INTO users ({_COLUMNS}) VALUES (:org, :id, :name, :created_at, NULL)"
        " ON CONFLICT (org, name) DO NOTHING RETURNING id",
        org=user.org,
        id=user.id,
        name=user.name,
        created_at=user.created_at,
    )
    return made is not None


async def named(tx: Tx, org: int, name: str) -> User | None:
    """A person by name."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM users WHERE org = :org AND name = :name", org=org, name=name)
    return _user(row) if row else None


async def of_id(tx: Tx, org: int, id: int) -> User | None:
    """A person by id."""
    row = await tx.one(f"SELECT {_COLUMNS} FROM users WHERE org = :org AND id = :id", org=org, id=id)
    return _user(row) if row else None


async def listed(tx: Tx, org: int) -> list[User]:
    """Everyone in an org, by name."""
    rows = await tx.all(f"SELECT {_COLUMNS} FROM users WHERE org = :org ORDER BY name", org=org)
    return [_user(row) for row in rows]


async def disable(tx: Tx, org: int, id: int, at: int | None) -> None:
    """Shut a person out from a moment on, or let them in again."""
    await tx.run("UPDATE users SET disabled_at = :at WHERE org = :org AND id = :id", org=org, id=id, at=at)


async def grant(tx: Tx, org: int, member: Member, at: int) -> bool:
    """Give a role; False when the person had it."""
    made = await tx.run(
        "INSERT INTO members (org, bank, person, role, created_at) VALUES (:org, :bank, :person, :role, :at)"
        " ON CONFLICT (org, person, bank, role) DO NOTHING",
        org=org,
        bank=member.bank,
        person=member.person,
        role=member.role,
        at=at,
    )
    return made == 1


async def withdraw(tx: Tx, org: int, member: Member) -> bool:
    """Take a role away; False when the person had it not."""
    gone = await tx.run(
        "DELETE FROM members WHERE org = :org AND person = :person AND bank = :bank AND role = :role",
        org=org,
        person=member.person,
        bank=member.bank,
        role=member.role,
    )
    return gone == 1


async def members(tx: Tx, org: int) -> list[Member]:
    """Every role in an org."""
    rows = await tx.all("SELECT person, bank, role FROM members WHERE org = :org ORDER BY person, bank, role", org=org)
    return [Member(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class Standing:
    """A person as they stand now."""

    name: str
    is_shut_out: bool
    #: Their roles by every name of the bank they hold at; None stands for the whole org.
    roles: dict[str | None, list[str]]


async def standing(tx: Tx, org: int, person: int) -> Standing | None:
    """What a person is now, in one question: it is asked at every request."""
    rows = await tx.all(
        "SELECT u.name AS person, u.disabled_at AS disabled_at, m.role AS role, m.bank AS bank, n.name AS name"
        " FROM users u LEFT JOIN members m ON m.org = u.org AND m.person = u.id"
        " LEFT JOIN bank_names n ON n.org = m.org AND n.bank = m.bank WHERE u.org = :org AND u.id = :person",
        org=org,
        person=person,
    )
    if not rows:
        return None
    found: dict[str | None, list[str]] = {}
    for row in rows:
        # A bank that is gone has no name, and must not pass for the whole org.
        if row["role"] is not None and (row["bank"] == EVERYWHERE or row["name"] is not None):
            found.setdefault(row["name"] if row["bank"] != EVERYWHERE else None, []).append(row["role"])
    return Standing(rows[0]["person"], rows[0]["disabled_at"] is not None, found)
