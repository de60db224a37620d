"""Where a memory is kept: in files of the home, or on a server. Only the owner's file may set this."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, SecretStr, field_validator

from memoriter.config.fields import FOLDER_NAME, Section, check_name, described
from memoriter.extension import offers

DEFAULT_TENANT = "default"


class StoreSettings(Section):
    """Where the memory is kept."""

    url: SecretStr | None = described(
        None,
        "URL of a server that holds the whole memory, see [scale](scale.md). Several gateways can share "
        "it. Without it, the memory is in files of the home. With it, the notes are on the server too, and "
        "`workspace` is only a cache: `memoriter pull` and `memoriter push` exchange notes with a folder of yours.",
    )
    tenant: Annotated[str, AfterValidator(check_name)] = described(
        DEFAULT_TENANT,
        "Name above the agents on the server. Agents of different tenants never see each other.",
        max_length=64,
    )
    servers: Mapping[str, SecretStr] = described(
        {},
        "URLs of more servers by tenant, such as `{acme: <URL>}`, so that all gateways can share "
        "one file of settings. A tenant that is not listed uses `store.url`. A URL in a variable or on the command "
        "line has precedence.",
    )

    @field_validator("url", mode="before")
    @classmethod
    def _empty_is_none(cls, url: object) -> object:
        return url or None

    @field_validator("url")
    @classmethod
    def _has_a_store(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not _is_url(url):
            raise ValueError(f"must be {_EXAMPLE.format(_schemes()[0])}")
        return url

    @field_validator("servers")
    @classmethod
    def _are_servers(cls, servers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
        if not all(FOLDER_NAME.fullmatch(tenant) and _is_url(url) for tenant, url in servers.items()):
            raise ValueError(f"must be tenants, each with {_EXAMPLE.format(_schemes()[0])}")
        return servers

    @property
    def is_shared(self) -> bool:
        """Whether a server holds the memory, and the files of this machine are copies."""
        return self.url is not None

    @property
    def name(self) -> str | None:
        """A name for the folder of working copies, without the password; None if there is no server."""
        return None if self.url is None else store_name(self.url.get_secret_value(), self.tenant)


#: What a URL looks like, for the first scheme that an extension offers a store for.
_EXAMPLE = "a URL such as {}://user:password@host/database"


def _schemes() -> list[str]:
    return list(offers("stores")) or ["scheme"]


def _is_url(url: SecretStr) -> bool:
    scheme, separator, _ = url.get_secret_value().partition("://")
    return bool(separator) and scheme in offers("stores")


def store_name(url: str, tenant: str) -> str:
    """Return a name that is the same for one server, database and tenant."""
    without_password = re.sub(r"(?<=://)([^:/?#@]*)(:[^@]*)?@", r"\1@", url)
    return hashlib.sha256(f"{without_password} {tenant}".encode("utf-8", "surrogatepass")).hexdigest()[:12]


def store_folder(home: Path, name: str | None) -> Path:
    """Return the folder of a memory in files, or of the working copies of one on a server."""
    return home if name is None else home / "stores" / name


def working_copy(home: Path, url: str, tenant: str, agent: str) -> Path:
    """Return the folder of an agent's notes, as a copy of what a server holds."""
    return store_folder(home, store_name(url, tenant)) / "agents" / agent / "workspace"
