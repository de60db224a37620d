"""The settings of engines and scope: nested sections, OpenClaw's names, times with units."""

from __future__ import annotations

import pytest
from places import Place

from memoriter.config import keys
from memoriter.errors import ConfigError, UntrustedConfig

OPENCLAW = """
memory:
  backend: qmd
  citations: "off"
  qmd:
    searchMode: query
    collections: [more]
    update: {interval: 5m, debounce: 500ms, commandTimeout: 10, updateTimeout: 1h}
    limits: {maxResults: 4, maxSnippetChars: 450, maxInjectedChars: 2200, timeoutMs: 8000}
    scope:
      default: deny
      rules:
        - {action: deny, match: {channel: discord}}
        - {action: allow, match: {chatType: direct, keyPrefix: "slack:"}}
"""


@pytest.mark.requirement("A1")
def test_names_and_shapes_of_openclaw_are_accepted(place: Place) -> None:
    place.own_file.write_text(OPENCLAW)
    settings = place.load()
    memory, search = settings.memory, settings.search
    qmd = memory.qmd
    assert (memory.backend, memory.citations, qmd.search_mode) == ("qmd", "off", "query")
    assert [extra.path for extra in qmd.paths] == [place.home / "more"]
    update = qmd.update
    times = (update.interval, update.debounce, update.command_timeout, update.update_timeout)
    assert times == (300, 0.5, 10, 3600)
    assert (search.max_results, search.snippet_chars, qmd.limits.timeout_ms) == (4, 450, 8000)
    assert memory.max_injected_chars == 2200
    assert [str(rule) for rule in memory.scope.rules] == [
        "deny channel=discord",
        "allow chat_type=direct key_prefix=slack:",
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "must have different names"),
        (["a", "memory"], "must not have the name memory, which memoriter uses itself"),
        (["extra-1"], "must not have the name extra-1, which memoriter uses itself"),
    ],
)
def test_no_collection_of_qmd_replaces_another(place: Place, names: list[str], message: str) -> None:
    paths = ", ".join(f"{{path: ~/{number}, name: {name}}}" for number, name in enumerate(names))
    place.own_file.write_text(f"memory: {{qmd: {{paths: [{paths}]}}}}")
    with pytest.raises(ConfigError, match=message):
        place.load()


@pytest.mark.requirement("A1", "C12")
def test_the_defaults(place: Place) -> None:
    memory = place.load().memory
    assert (memory.backend, memory.citations, memory.max_injected_chars) == ("builtin", "auto", 4000)
    assert (memory.scope.default, [str(rule) for rule in memory.scope.rules]) == (
        "deny",
        ["allow chat_type=direct"],
    )
    qmd = memory.qmd
    assert (qmd.search_mode, qmd.limits.timeout_ms, qmd.update.interval) == ("search", 4000, 300)


def test_values_of_nested_sections_have_an_origin(place: Place) -> None:
    place.own_file.write_text("memory: {qmd: {limits: {max_results: 4}}}")
    place.environ["MEMORITER_MEMORY__QMD__UPDATE__INTERVAL"] = "10m"
    settings = place.load({"memory.qmd.limits.timeout_ms": 9000})
    assert settings.memory.qmd.update.interval == 600
    assert settings.origin("search.max_results") == str(place.own_file)
    assert settings.origin("memory.qmd.update.interval") == "MEMORITER_MEMORY__QMD__UPDATE__INTERVAL"
    assert settings.origin("memory.qmd.limits.timeout_ms") == "overrides"


def test_openclaws_names_work_as_variables_too(place: Place) -> None:
    place.environ["MEMORITER_MEMORY__QMD__LIMITS__MAX_RESULTS"] = "4"
    assert place.load().search.max_results == 4


def test_a_variable_holds_rules_as_texts(place: Place) -> None:
    place.environ["MEMORITER_MEMORY__SCOPE__RULES"] = "[deny channel=irc, 'allow key_prefix=slack:c1']"
    rules = place.load().memory.scope.rules
    assert [(rule.action, rule.channel, rule.key_prefix) for rule in rules] == [
        ("deny", "irc", None),
        ("allow", None, "slack:c1"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{backend: qdm}", "memory.backend = 'qdm' from"),
        ("{qmd: {search_mode: fast}}", "memory.qmd.search_mode = 'fast' from"),
        ("{qmd: {limits: {timeout_ms: 1}}}", "memory.qmd.limits.timeout_ms = 1 from"),
        ("{qmd: {limits: {timeout: 1}}}", "Did you mean 'memory.qmd.limits.timeout_ms'"),
        ("{qmd: {update: {interval: soon}}}", "memory.qmd.update.interval = 'soon' from"),
        ("{qmd: {update: {interval: -1}}}", "memory.qmd.update.interval = -1 from"),
        ("{qmd: fast}", "memory.qmd in "),
        ("{qmd: {limits: 3}}", "memory.qmd.limits in "),
        ("{scope: {rules: [allow everybody]}}", "must be a rule such as"),
        ("{scope: {rules: [{action: permit}]}}", "memory.scope.rules"),
        ("{scope: {rules: [allow chat_type=party]}}", "memory.scope.rules"),
        ("{scope: {rules: [allow colour=red]}}", "memory.scope.rules"),
    ],
)
def test_an_error_names_the_key(place: Place, text: str, message: str) -> None:
    place.own_file.write_text(f"memory: {text}")
    with pytest.raises(ConfigError) as error:
        place.load()
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text", ["{qmd: {command: /tmp/evil}}", "{backend: qmd}", "{scope: {default: allow}}"]
)
def test_a_workspace_may_not_choose_the_engine_its_program_or_the_scope(place: Place, text: str) -> None:
    place.workspace_file.write_text(f"memory: {text}")
    with pytest.raises(UntrustedConfig):
        place.load()


def test_every_key_is_described() -> None:
    assert [key for key, field in keys().items() if not field.description] == []
