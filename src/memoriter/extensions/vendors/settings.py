"""The settings of vendors. They are part of the section `embedding`."""

from __future__ import annotations

from pydantic import SecretStr

from memoriter.config.fields import Section, Url, described


class GeminiSettings(Section):
    """The key of Gemini."""

    gemini_api_key: SecretStr | None = described(
        None, "Also read from `GEMINI_API_KEY` and `GOOGLE_API_KEY`."
    )


class OllamaSettings(Section):
    """The address of an Ollama server."""

    ollama_base_url: Url | None = described(
        None, "Also read from `OLLAMA_BASE_URL`. Default: `http://127.0.0.1:11434`."
    )


class OpenAISettings(Section):
    """The key and the address of OpenAI or of a compatible server."""

    openai_api_key: SecretStr | None = described(None, "Also read from `OPENAI_API_KEY`.")
    openai_base_url: Url | None = described(
        None, "Also read from `OPENAI_BASE_URL`. `base_url` takes precedence."
    )


class VoyageSettings(Section):
    """The key of Voyage."""

    voyage_api_key: SecretStr | None = described(None, "Also read from `VOYAGE_API_KEY`.")
