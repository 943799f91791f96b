"""`/tokens`: which agents may come with what? Made, listed and revoked by the operator; a secret is shown once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from mcpproxy.access.tokens import Grant, NameTaken, Token, TooManyTokens
from mcpproxy.activity.record import Record
from mcpproxy.api.envelope import ApiError, Ok, ok, request_id
from mcpproxy.api.services import Rooms, Services, source
from mcpproxy.config.models import Duration

router = APIRouter(prefix="/tokens", tags=["tokens"])

_LIFETIMES = "a duration such as 12h, 30d or 1h30m, or never"


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it holds control characters")
    return text


def _lifetime(text: str) -> str:
    if text != "never" and Duration.read(text) is None:
        raise ValueError(f"give {_LIFETIMES}")
    return text


Glob = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Globs = Annotated[list[Glob], Field(min_length=1, max_length=100)]
Operation = Literal["read", "write", "destructive"]


class TokenRequest(BaseModel):
    """What a new token is to be called, and what it may do."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, AfterValidator(_printable)] = Field(min_length=1, max_length=64, examples=["ci"])
    servers: Globs = Field(default=["*"], description="Globs of servers that it sees")
    tools: Globs = Field(
        default=["*"],
        description="Globs of tools that it sees: `server:tool`, or a bare name on every server in scope",
        examples=[["github:list_*"]],
    )
    allow: list[Operation] = Field(
        default=["read"], min_length=1, max_length=3, description="The kinds of calls that it may make"
    )
    expires: Annotated[str, AfterValidator(_lifetime)] = Field(
        default="30d", max_length=64, description=f"How long it holds: {_LIFETIMES}"
    )


class TokenView(BaseModel):
    """One token, without its secret."""

    id: str
    name: str
    servers: list[str]
    tools: list[str]
    allow: list[Operation]
    created_at: datetime
    expires_at: datetime | None
    expired: bool
    last_used_at: datetime | None = Field(description="To the minute")


class NewToken(TokenView):
    """A new token; `token` is its secret, and is not shown again."""

    token: str = Field(examples=["mcpp_…"])


class TokenList(BaseModel):
    """Every token, oldest first."""

    tokens: list[TokenView]


class Revoked(BaseModel):
    """The token that is no more."""

    id: str
    name: str


def _shown(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "servers": list(token.grant.servers),
        "tools": list(token.grant.tools),
        "allow": list(token.grant.allow),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "expired": token.expired(),
        "last_used_at": token.last_used_at,
    }


@router.get("", response_model=Ok[TokenList])
async def list_tokens(request: Request, rooms: Rooms) -> dict[str, Any]:
    """Every token and what it may do."""
    return ok(request, TokenList(tokens=[TokenView(**_shown(token)) for token in rooms.tokens]))


@router.post("", response_model=Ok[NewToken], status_code=201)
async def create_token(request: Request, body: TokenRequest, rooms: Rooms) -> dict[str, Any]:
    """Make a token. This answer is the only place where its secret is shown."""
    grant = Grant(servers=tuple(body.servers), tools=tuple(body.tools), allow=tuple(dict.fromkeys(body.allow)))
    lifetime = Duration.read(body.expires)
    try:
        token, secret = await rooms.tokens.create(
            body.name, grant, timedelta(seconds=lifetime) if lifetime is not None else None
        )
    except (NameTaken, TooManyTokens) as error:
        raise ApiError(409, str(error)) from None
    try:
        await _put_on_record(request, rooms, "token_created", token)
    except BaseException:
        await rooms.tokens.revoke(token.id)  # what is not on record must not be used
        raise
    return ok(request, NewToken(**_shown(token), token=secret))


@router.delete("/{id}", response_model=Ok[Revoked])
async def revoke_token(
    request: Request, id: Annotated[str, Path(description="The token's id")], rooms: Rooms
) -> dict[str, Any]:
    """End a token at once, with the sessions that it opened."""
    token = await rooms.tokens.revoke(id)
    if token is None:
        raise ApiError(404, f"There is no token with the id {id[:64]!r}.")
    await _put_on_record(request, rooms, "token_revoked", token)
    return ok(request, Revoked(id=token.id, name=token.name))


async def _put_on_record(request: Request, rooms: Services, change: str, token: Token) -> None:
    shown = {"id": token.id, "name": token.name, "servers": token.grant.servers, "tools": token.grant.tools}
    await rooms.house.journal.write(
        Record(
            type="config_change",
            source=source(request),
            status="success",
            request_id=request_id(request),
            metadata={"change": change, "token": {**shown, "allow": token.grant.allow}},
        )
    )
