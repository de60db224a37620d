"""Settings of the vector engine `pinecone`."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import SecretStr, field_validator

from memoriter.config.fields import Number, Section, check_url, described


class PineconeSettings(Section):
    """The Pinecone index of the vector engine `pinecone`."""

    api_key: SecretStr | None = described(None, "Also read from `PINECONE_API_KEY`.")
    index: str = described("memoriter", "Name of the index. It is created if it does not exist.")
    host: str | None = described(
        None, "Address of the index, such as `memoriter-abc.svc.aped.pinecone.io`. Default: ask Pinecone."
    )
    cloud: Literal["aws", "gcp", "azure"] = described("aws", "Cloud of a new index.")
    region: str = described("us-east-1", "Region of a new index.")
    api_url: str = described(
        "https://api.pinecone.io", "URL of Pinecone's API, which creates and finds indexes."
    )
    timeout_s: Number = described(4.0, "Time limit of a query in seconds.", gt=0, le=60)

    @field_validator("index")
    @classmethod
    def _is_an_index_name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?", name, re.ASCII):
            raise ValueError("must be up to 45 lower-case letters, digits and '-', as in `memoriter`")
        return name

    @field_validator("host")
    @classmethod
    def _is_a_host(cls, host: str | None) -> str | None:
        return None if host is None else check_url(host if "://" in host else f"https://{host}")

    @field_validator("api_url")
    @classmethod
    def _is_a_url(cls, url: str) -> str:
        return check_url(url)
