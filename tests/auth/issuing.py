"""Issuers of tokens: their keys, what they publish on a server of their own, and the setting that names them."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.auth.conftest import Json, Served, bearer
from tests.llm_server import served as standing

HERE, AUDIENCE = "https://login.example/auth/v1", "keepsake"
SECRET = "a secret that is shared with the issuer, and long enough"


@dataclass
class Signer:
    """A key of an issuer."""

    kid: str
    algorithm: str
    private: Any

    @classmethod
    def of(cls, algorithm: str, kid: str = "one", bits: int = 2048) -> "Signer":
        kinds = {
            "RS256": lambda: rsa.generate_private_key(65537, bits),
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate,
        }
        return cls(kid, algorithm, kinds[algorithm]())

    @property
    def published(self) -> Json:
        made: Json = json.loads(get_default_algorithms()[self.algorithm].to_jwk(self.private.public_key()))
        return made | {"kid": self.kid, "use": "sig", "alg": self.algorithm}

    @property
    def pem(self) -> bytes:
        public: bytes = self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return public

    def token(self, headers: Json | None = None, **changed: Any) -> str:
        """A good token, but for what is changed; None takes a claim out."""
        return jwt.encode(claims(**changed), self.private, self.algorithm, {"kid": self.kid} | (headers or {}))


def claims(**changed: Any) -> Json:
    now = int(time.time())
    told = {"iss": HERE, "aud": AUDIENCE, "sub": "u-17", "iat": now, "exp": now + 600} | changed
    return {name: value for name, value in told.items() if value is not None}


@dataclass
class Publisher:
    """What an issuer publishes, and how often it was asked."""

    url: str = ""
    keys: list[Json] = field(default_factory=list)
    asked: int = 0
    answer: Response | None = None


@contextmanager
def publishing(*signers: Signer) -> Iterator[Publisher]:
    """An issuer's keys on a server of their own."""
    publisher = Publisher(keys=[signer.published for signer in signers])

    async def keys(request: Request) -> Response:
        publisher.asked += 1
        return publisher.answer or JSONResponse({"keys": publisher.keys})

    with standing(Starlette(routes=[Route("/jwks.json", keys), Route("/elsewhere", keys)])) as url:
        publisher.url = f"{url}/jwks.json"
        yield publisher


def named(publisher: Publisher | None = None, **given: Any) -> str:
    """The setting that names one issuer."""
    where = {"jwks_url": publisher.url} if publisher else {"secret": SECRET}
    return json.dumps([{"issuer": HERE, "audience": AUDIENCE} | where | given])


async def listed(server: Served, token: str | None, path: str = "/api/mcp") -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_projects", "arguments": {}}}
    return await server.http.post(path, json=message, headers={"Accept": "application/json", **bearer(token)})
