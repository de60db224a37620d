"""The settings of OpenAI."""

from __future__ import annotations

from pydantic import Field, SecretStr

from memoriter.config.fields import Section, Url


class OpenAISettings(Section):
    """The key and the address of OpenAI or of a compatible server."""

    openai_api_key: SecretStr | None = Field(default=None, description="Also read from `OPENAI_API_KEY`.")
    openai_base_url: Url | None = Field(
        default=None, description="Also read from `OPENAI_BASE_URL`. `base_url` takes precedence."
    )
