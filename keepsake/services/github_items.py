"""The parts of GitHub's answers that we read; whatever may be absent or null there may be so here."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from keepsake.core import clock


def _moment(told: str) -> str:
    if told:
        clock.parse(told)
    return told


def _address(told: object) -> str:
    """An address that a reader may follow; anything else is none."""
    return told if isinstance(told, str) and told.startswith(("https://", "http://")) else ""


#: GitHub says null for a text or a time that is not there.
Text = Annotated[str, BeforeValidator(lambda told: told or "")]
Moment = Annotated[Text, AfterValidator(_moment)]
Link = Annotated[str, BeforeValidator(_address)]


class User(BaseModel):
    """Who did something."""

    login: str
    type: Text = "User"

    @property
    def is_bot(self) -> bool:
        """Whether a program wrote it."""
        return self.type == "Bot" or self.login.endswith("[bot]")


class Label(BaseModel):
    """A label of an issue or pull request."""

    name: Text = ""


class Authored(BaseModel):
    """What someone wrote; who has left GitHub since is null there."""

    user: User | None = None
    body: Text = ""

    @property
    def author(self) -> str:
        """The name, as GitHub shows it."""
        return self.user.login if self.user else "ghost"

    @property
    def is_bot(self) -> bool:
        """Whether a program wrote it."""
        return self.user is not None and self.user.is_bot


class Item(Authored):
    """What an issue and a pull request have in common."""

    number: int = Field(ge=1)
    title: Text = ""
    state: Text = ""
    html_url: Link = ""
    labels: list[Label] = []
    created_at: Moment = Field(min_length=1)
    updated_at: Moment = Field(min_length=1)
    closed_at: Moment = ""


class Issue(Item):
    """An issue; the same list tells of pull requests too."""

    comments: int = 0
    pull_request: dict[str, object] | None = None
    repository_url: Link = ""


class Pull(Item):
    """A pull request."""

    draft: bool = False
    merged_at: Moment = ""


class Comment(Authored):
    """A comment on an issue or pull request, or on a line of one."""

    id: int
    created_at: Moment = ""
    #: Where a comment on a line stands.
    path: Text = ""
    line: int | None = None
    original_line: int | None = None
    pull_request_review_id: int | None = None


class Review(Authored):
    """What a reviewer said of the whole; the verdict may come without a word."""

    id: int
    state: Text = ""
    submitted_at: Moment = ""


class Release(BaseModel):
    """A release; drafts are shown only to those who may write."""

    tag_name: str
    name: Text = ""
    body: Text = ""
    draft: bool = False
    prerelease: bool = False
    author: User | None = None
    html_url: Link = ""
    created_at: Moment = Field(min_length=1)
    published_at: Moment = ""
    updated_at: Moment = ""


class Entry(BaseModel):
    """A file, folder (`tree`) or submodule (`commit`) of a revision."""

    path: str
    mode: str = "100644"
    type: str
    sha: str
    size: int = 0


class Tree(BaseModel):
    """The files of a revision."""

    sha: str
    tree: list[Entry]
    truncated: bool = False
