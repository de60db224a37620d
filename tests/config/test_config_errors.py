"""An error in the settings is one sentence that names the key, the value, the place and what is allowed."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from places import Place

from memoriter.config import Settings, keys, load
from memoriter.errors import ConfigError, UntrustedConfig

NO_RESET = hypothesis_settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def error_of(place: Place, arguments: dict[str, object] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        place.load(arguments)
    return (
        str(caught.value).replace(str(place.own_file), "FILE").replace(str(place.workspace_file), "WORKSPACE")
    )


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "search: {max_result: 3}",
            "Unknown setting 'search.max_result' in FILE. Did you mean 'search.max_results'?",
        ),
        ("max_results: 3", "Unknown setting 'max_results' in FILE. Did you mean 'search.max_results'?"),
        ("xyzzy: 3", "Unknown setting 'xyzzy' in FILE."),
        ("serch: {fusion: rrf}", "Unknown setting 'serch.fusion' in FILE. Did you mean 'search.fusion'?"),
        ("search: 5", "search in FILE must be a section with keys such as 'search.max_results'."),
        (
            "search: {max_results: many}",
            "The setting search.max_results = 'many' from FILE is not valid: it must be a whole number.",
        ),
        (
            "search: {max_results: 0}",
            "The setting search.max_results = 0 from FILE is not valid: it must be at least 1.",
        ),
        (
            "search: {min_score: true}",
            "The setting search.min_score = True from FILE is not valid: it must be a number, not true or false.",
        ),
        (
            "search: {min_score: .nan}",
            "The setting search.min_score = nan from FILE is not valid: it must be a finite number.",
        ),
        (
            "search: {fusion: sum}",
            "The setting search.fusion = 'sum' from FILE is not valid: it must be 'weighted' or 'rrf'.",
        ),
        (
            "search: {vector_weight: 0.5}",
            (
                "The section search from FILE is not valid: "
                "vector_weight (0.5) and text_weight (0.4) must sum to 1: set both."
            ),
        ),
        (
            "chunking: {tokens: 64}",
            "The section chunking from FILE is not valid: overlap (64) must be smaller than tokens (64).",
        ),
        (
            "embedding: {provider: locl}",
            (
                "The setting embedding.provider = 'locl' from FILE is not valid: "
                "it must be one of auto, local, none, gemini, llama-cpp, "
                "ollama, openai, voyage. Did you mean 'local'?"
            ),
        ),
        (
            "embedding: {model_path: 3}",
            "The setting embedding.model_path from FILE is not a usable path: '3' is not a text.",
        ),
        (
            "files: {patterns: [../*.md]}",
            (
                "The setting files.patterns = ['../*.md'] from FILE is not valid: it "
                "must be patterns below a folder, such as '**/*.md', without '..' or a leading '/'."
            ),
        ),
        (
            "agent: ../main",
            (
                "The setting agent = '../main' from FILE is not valid: "
                "it must be letters, digits, '-', '_' and '.', not starting with '.'."
            ),
        ),
        ("files: {patterns: 5}", "The setting files.patterns = 5 from FILE is not valid: it must be a list."),
        ("- agent", "FILE must contain keys with values, such as 'agent: main'."),
        ("search: [", "FILE, line 1 is not valid YAML: expected the node content, but found '<stream end>'."),
        ("agent: a\nagent: b", "FILE, line 2 is not valid YAML: the key 'agent' appears twice."),
        ("agent: &a b\nhome: *a", "FILE, line 2 is not valid YAML: aliases are not supported."),
        (
            "agent: !!python/name:os.system x",
            (
                "FILE, line 1 is not valid YAML: could not determine a constructor for the tag "
                "'tag:yaml.org,2002:python/name:os.system'."
            ),
        ),
        (
            "search: {max_results: 0, fusion: sum}\nhme: /x",
            "Unknown setting 'hme' in FILE. Did you mean 'home'? The settings contain 2 more errors.",
        ),
    ],
)
def test_in_a_file(place: Place, text: str, message: str) -> None:
    place.own_file.write_text(text)
    assert error_of(place) == message


def test_in_a_variable(place: Place) -> None:
    place.environ["MEMORITER_SEARCH__MIN_SCORE"] = "2"
    assert (
        error_of(place)
        == "The setting search.min_score = '2' from MEMORITER_SEARCH__MIN_SCORE is not valid: it must be at most 1."
    )


def test_in_the_name_of_a_variable(place: Place) -> None:
    place.environ["MEMORITER_SERCH__MAX_RESULTS"] = "2"
    assert error_of(place) == (
        "Unknown variable MEMORITER_SERCH__MAX_RESULTS. Did you mean 'MEMORITER_SEARCH__MAX_RESULTS'?"
    )


def test_in_an_argument(place: Place) -> None:
    assert error_of(place, {"search.max_results": 0}) == (
        "The setting search.max_results = 0 from overrides is not valid: it must be at least 1."
    )
    assert error_of(place, {"search.limit": 3}) == "Unknown setting 'search.limit' in overrides."


def test_between_two_places_names_both(place: Place) -> None:
    place.own_file.write_text("chunking: {tokens: 100}")
    place.environ["MEMORITER_CHUNKING__OVERLAP"] = "100"
    assert error_of(place) == (
        "The section chunking from FILE and MEMORITER_CHUNKING__OVERLAP is not valid: "
        "overlap (100) must be smaller than tokens (100)."
    )


def test_in_the_form_of_a_file(place: Place) -> None:
    place.own_file.write_bytes(b"agent: \xff\xfe")
    assert error_of(place) == "The settings file FILE is not UTF-8 (byte 7)."
    place.own_file.write_text("#" * 300_000)
    assert error_of(place) == "The settings file FILE is larger than 256 KiB."
    place.own_file.write_text("[" * 100_000)
    assert error_of(place).startswith("FILE is not valid YAML: ")
    place.own_file.unlink()
    place.own_file.mkdir()
    reason = os.strerror(errno.EACCES if sys.platform == "win32" else errno.EISDIR)
    assert error_of(place) == f"The settings file FILE cannot be read: {reason}."


ALLOWED = {
    *(key for key in keys() if key.startswith(("chunking.", "search."))),
    *("memory.citations", "files.patterns", "files.extra_paths"),
}


class TestTheFileOfAWorkspace:
    @pytest.mark.parametrize(
        "text",
        [
            "chunking: {tokens: 100}",
            "search: {max_results: 2}",
            "memory: {citations: on}",
            "files: {patterns: ['*.txt']}",
        ],
    )
    def test_may_tune_the_search(self, place: Place, text: str) -> None:
        place.workspace_file.write_text(text)
        origins = {line.origin for line in place.load().describe()}
        assert str(place.workspace_file) in origins

    @pytest.mark.parametrize("key", [key for key in keys() if key not in ALLOWED])
    def test_may_not_set_anything_else(self, place: Place, key: str) -> None:
        section, _, name = key.rpartition(".")
        place.workspace_file.write_text(f"{section}: {{{name}: x}}" if section else f"{name}: x")
        with pytest.raises(UntrustedConfig) as caught:
            place.load()
        assert str(caught.value).startswith(
            f"{key} in {place.workspace_file}: a workspace's file may not set this. Set it in your own"
        )

    def test_may_only_name_paths_inside_the_workspace(self, place: Place) -> None:
        place.workspace_file.write_text("files: {extra_paths: [docs, ./a/../b]}")
        assert place.load().files.extra_paths == (place.workspace / "docs", place.workspace / "b")
        (place.workspace / "link").symlink_to("/etc")
        for outside in ("..", "/etc", "~/x", "docs/../../x", "link/x"):
            place.workspace_file.write_text(f"files: {{extra_paths: [docs, {outside}]}}")
            with pytest.raises(UntrustedConfig, match=r"is outside the workspace\. Set it in your own"):
                place.load()

    def test_is_reported_first_of_several_errors(self, place: Place) -> None:
        place.own_file.write_text("xyzzy: 1")
        place.workspace_file.write_text("home: /elsewhere")
        assert error_of(place) == (
            "home in WORKSPACE: a workspace's file may not set this. Set it in your own config.yaml. "
            "The settings contain 1 more error."
        )

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
    def test_may_not_be_a_link_or_a_pipe(self, place: Place) -> None:
        secret = place.root / "secret"
        secret.write_text("search: {max_results: 1}")
        place.workspace_file.symlink_to(secret)
        assert error_of(place).startswith("The settings file WORKSPACE cannot be read: ")
        place.workspace_file.unlink()
        os.mkfifo(place.workspace_file)
        assert error_of(place) == "The settings file WORKSPACE is not a regular file."


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
KEYS = st.sampled_from(sorted(keys())) | st.text(max_size=20)


def assert_settings_or_one_sentence(place: Place, arguments: dict[str, object] | None = None) -> None:
    message = "Fine."
    try:
        assert isinstance(place.load(arguments), Settings)
    except ConfigError as error:
        message = str(error)
    assert message.splitlines() == [message]
    assert len(message) < 1500
    assert message.endswith((".", "?"))
    assert "input should" not in message.lower()
    assert "is not a valid value" not in message


@NO_RESET
@given(key=KEYS, value=VALUES)
def test_any_key_and_value_in_a_file_give_settings_or_one_sentence(
    place: Place, key: str, value: object
) -> None:
    section, _, name = key.rpartition(".")
    document = {section: {name: value}} if section else {name: value}
    for file in (place.own_file, place.workspace_file):
        file.write_text(yaml.safe_dump(document, allow_unicode=True), "utf-8")
        assert_settings_or_one_sentence(place)
        file.unlink()


@NO_RESET
@given(data=st.binary(max_size=60))
def test_any_bytes_as_a_file_give_settings_or_one_sentence(place: Place, data: bytes) -> None:
    place.own_file.write_bytes(data)
    assert_settings_or_one_sentence(place)


@NO_RESET
@given(key=KEYS, value=VALUES)
def test_any_argument_gives_settings_or_one_sentence(place: Place, key: str, value: object) -> None:
    assert_settings_or_one_sentence(place, {key: value})


@NO_RESET
@given(name=st.sampled_from(sorted(keys())) | st.text("ABC_", max_size=8), text=st.text(max_size=30))
def test_any_variable_gives_settings_or_one_sentence(tmp_path: Path, name: str, text: str) -> None:
    variable = "MEMORITER_" + name.upper().replace(".", "__")
    assert_settings_or_one_sentence(Place(tmp_path, {variable: text}))


def test_variables_of_test_suites_are_not_settings(tmp_path: Path) -> None:
    load(
        environ={"MEMORITER_HOME": str(tmp_path), "MEMORITER_TEST_MODEL": "/x", "MEMORITER_SOAK": "1"},
        cwd=tmp_path,
    )


def test_a_secret_is_never_shown(place: Place) -> None:
    place.environ["OPENAI_API_KEY"] = "hunter2"
    settings = place.load()
    assert {line.key: line.value for line in settings.describe()}["embedding.openai_api_key"] == "***"
    assert "hunter2" not in repr(settings)
    place.environ |= {"MEMORITER_STORE__URL": "far-too-secret"}
    assert error_of(place).startswith("The setting store.url = *** from MEMORITER_STORE__URL is not valid: ")
    assert "far-too" not in error_of(place)
