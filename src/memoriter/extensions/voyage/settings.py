"""The settings of Voyage."""

from __future__ import annotations

from pydantic import Field, SecretStr

from memoriter.config.fields import Section


class VoyageSettings(Section):
    """The key of Voyage."""

    voyage_api_key: SecretStr | None = Field(default=None, description="Also read from `VOYAGE_API_KEY`.")
