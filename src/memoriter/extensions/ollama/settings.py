"""The settings of Ollama."""

from __future__ import annotations

from pydantic import Field

from memoriter.config.fields import Section, Url


class OllamaSettings(Section):
    """The address of an Ollama server."""

    ollama_base_url: Url | None = Field(
        default=None, description="Also read from `OLLAMA_BASE_URL`. Default: `http://127.0.0.1:11434`."
    )
