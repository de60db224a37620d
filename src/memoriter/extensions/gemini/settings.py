"""The settings of Gemini."""

from __future__ import annotations

from pydantic import Field, SecretStr

from memoriter.config.fields import Section


class GeminiSettings(Section):
    """The key of Gemini."""

    gemini_api_key: SecretStr | None = Field(
        default=None, description="Also read from `GEMINI_API_KEY` and `GOOGLE_API_KEY`."
    )
