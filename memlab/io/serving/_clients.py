"""The clients of one server over HTTP: each has a token of its own, and with it a role, a viewer and a project."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.errors import InputError, UnknownName, did_you_mean
from memlab.kernel.base.arguments import shown
from memlab.kernel.verbs.gate import ROLES, Role

__all__ = ["SHORTEST_TOKEN", "Client", "check_token", "clients_in"]

SHORTEST_TOKEN = 16
"""Characters of a token that a caller chooses."""
_KEYS = ("token", "role", "viewer", "project")
_LARGEST = 1 << 20


@dataclass(frozen=True)
class Client:
    """Who sends ``token``, and what it may do."""

    token: str
    role: Role
    viewer: str | None
    project: str | None


def clients_in(path: Path) -> list[Client]:
    """The clients of a TOML file: a table for each, under its name, with token, role, and maybe viewer and project.

    Without a viewer "coder" asks and writes as "agent:coder". InputError for a file that others than its owner can
    read, for what is no such file, and for a token that two have.
    """
    try:
        with path.open("rb") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise InputError(f"{path} holds tokens, and others can read or change it: chmod 600 {path}")
            text = file.read(_LARGEST).decode()
        given = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} is no TOML: {error}") from None
    found = [_client(f"{path}, [{name}]", name, table) for name, table in given.items()]
    if not found:
        raise InputError(f'{path} names no client: give each a table, such as [coder] with token = "..." and role.')
    if len({client.token for client in found}) < len(found):
        raise InputError(f"{path} gives two clients one token: who is who?")
    return found


def _client(where: str, name: str, table: Any) -> Client:
    if not isinstance(table, Mapping):
        raise InputError(f"{where} is a table with token and role, not {type(table).__name__}.")
    for key, value in table.items():
        if key not in _KEYS:
            raise InputError(f"{where} has no key {shown(key)}. {did_you_mean(key, _KEYS)}")
        if not isinstance(value, str):
            raise InputError(f"{where}: {key} is a text, not {type(value).__name__}.")
    for needed in ("token", "role"):
        if needed not in table:
            raise InputError(f"{where} needs {needed}.")
    if table["role"] not in ROLES:
        raise UnknownName("role", table["role"], ROLES)
    check_token(table["token"], where)
    return Client(table["token"], table["role"], table.get("viewer", f"agent:{name}"), table.get("project"))


def check_token(token: str, where: str) -> None:
    """InputError for a token that is too short, or that no header can carry."""
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            f"{where}: a token has at least {SHORTEST_TOKEN} characters, of ASCII, printable and without spaces."
        )
