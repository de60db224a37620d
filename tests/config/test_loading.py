"""Where values come from, and which place wins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from places import Place

from memoriter.config import Setting, Settings, keys, load
from memoriter.config.settings import full_settings
from memoriter.errors import BadArgument, ConfigError, UntrustedConfig
from memoriter.files.platform import quote


def test_nothing_has_to_be_set(place: Place) -> None:
    settings = place.load()
    assert settings.model_dump() == full_settings()(workspace=place.workspace, home=place.home).model_dump()
    assert {line.origin for line in settings.describe()} == {
        "default",
        "MEMORITER_HOME",
        "MEMORITER_WORKSPACE",
    }


@pytest.mark.requirement("C6")
def test_later_places_win_and_each_value_has_an_origin(place: Place) -> None:
    place.own_file.write_text("search: {max_results: 1, min_score: 0.11, snippet_chars: 111, diversity: 0.1}")
    place.workspace_file.write_text("search: {min_score: 0.22, snippet_chars: 222, diversity: 0.2}")
    place.environ |= {"MEMORITER_SEARCH__SNIPPET_CHARS": "333", "MEMORITER_SEARCH__DIVERSITY": "0.3"}
    settings = place.load({"search.diversity": 0.4})
    assert [
        line for line in settings.describe() if line.key.startswith("search.") and line.origin != "default"
    ] == [
        Setting("search.max_results", 1, str(place.own_file)),
        Setting("search.min_score", 0.22, str(place.workspace_file)),
        Setting("search.snippet_chars", 333, "MEMORITER_SEARCH__SNIPPET_CHARS"),
        Setting("search.diversity", 0.4, "overrides"),
    ]


def test_an_argument_of_none_is_not_set(place: Place) -> None:
    settings = place.load({"search.max_results": None})
    assert (settings.search.max_results, settings.origin("search.max_results")) == (6, "default")


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().search.max_results = 3  # type: ignore[misc]


def test_every_setting_can_be_set_by_its_variable(place: Place) -> None:
    values = {line.key: line.value for line in place.load().describe()}
    for key, value in values.items():
        if value is not None:
            text = os.pathsep.join(value) if isinstance(value, list) else str(value)
            place.environ["MEMORITER_" + key.upper().replace(".", "__")] = text
    settings = place.load()
    assert {line.key: line.value for line in settings.describe()} == values
    assert settings.origin("search.sync_before") == "MEMORITER_SEARCH__SYNC_BEFORE"


@pytest.mark.parametrize("text", ['["a/*.md", "b/*.txt"]', f"a/*.md{os.pathsep}b/*.txt"])
def test_a_list_in_a_variable_is_yaml_or_separated_like_path(place: Place, text: str) -> None:
    place.environ["MEMORITER_FILES__PATTERNS"] = text
    assert place.load().files.patterns == ("a/*.md", "b/*.txt")


def test_an_empty_variable_is_not_set(place: Place) -> None:
    place.environ |= {"MEMORITER_SEARCH__MAX_RESULTS": "", "MEMORY_DIR": ""}
    assert place.load().search.max_results == 6


def test_null_unsets_optional_settings_and_is_ignored_for_others(place: Place) -> None:
    place.own_file.write_text("agent:\nsearch:\n  half_life_days: 30\n  max_results:\nchunking:\n")
    assert place.load().search.half_life_days == 30
    place.environ["MEMORITER_SEARCH__HALF_LIFE_DAYS"] = "null"
    assert place.load().search.half_life_days is None


def test_a_relative_path_is_relative_to_the_place_that_names_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(place.root / "user"))
    place.own_file.write_text(
        "files: {extra_paths: [notes, ~/journal, /abs]}\nembedding: {model_path: ../model}"
    )
    settings = place.load()
    assert settings.files.extra_paths == (
        place.home / "notes",
        place.root / "user" / "journal",
        place.home / "/abs",
    )
    assert settings.embedding.model_path == place.root / "model"
    assert place.load({"files.extra_paths": ["notes"]}).files.extra_paths == (place.root / "notes",)


def test_a_list_of_one_item_needs_no_brackets(place: Place) -> None:
    place.own_file.write_text("files: {extra_paths: ./journal, patterns: '*.txt'}")
    files = place.load().files
    assert (files.extra_paths, files.patterns) == ((place.home / "journal",), ("*.txt",))


def test_no_and_off_are_words_not_booleans(place: Place) -> None:
    place.own_file.write_text("agent: no\nmemory: {citations: off}\nsearch: {sync_before: off}")
    settings = place.load()
    assert (settings.agent, settings.memory.citations, settings.search.sync_before) == ("no", "off", False)


def test_a_name_of_digits_is_kept_as_text(place: Place) -> None:
    place.own_file.write_text("agent: 007")
    assert place.load().agent == "007"
    place.own_file.write_text("agent: 2026-02-08")
    assert place.load().agent == "2026-02-08"


def test_a_file_may_have_a_byte_order_mark_or_be_empty(place: Place) -> None:
    place.own_file.write_bytes(b"\xef\xbb\xbfagent: bom\n")
    assert place.load().agent == "bom"
    place.own_file.write_text("# nothing yet\n")
    assert place.load().agent == "main"


def test_the_config_option_replaces_the_file_in_the_home(place: Place) -> None:
    place.own_file.write_text("agent: home")
    other = place.root / "other.yaml"
    other.write_text("agent: other")
    assert place.load(config=Path("other.yaml")).agent == "other"
    place.environ["MEMORITER_CONFIG"] = str(other)
    assert place.load().origin("agent") == str(other)


def test_a_named_file_must_exist(place: Place) -> None:
    with pytest.raises(ConfigError) as caught:
        place.load(config=Path("gone.yaml"))
    assert str(caught.value) == (
        f"The settings file {place.root / 'gone.yaml'}, named by --config, does not exist."
    )


class TestTheWorkspace:
    def test_is_the_current_folder_if_it_contains_notes(self, tmp_path: Path) -> None:
        (tmp_path / "memory").mkdir()
        settings = load(environ={"MEMORITER_HOME": str(tmp_path / "home")}, cwd=tmp_path)
        assert (settings.workspace, settings.origin("workspace")) == (tmp_path, "the current folder")

    def test_is_in_the_home_otherwise(self, tmp_path: Path) -> None:
        settings = load(environ={"MEMORITER_HOME": str(tmp_path / "home")}, cwd=tmp_path)
        assert (settings.workspace, settings.origin("workspace")) == (
            tmp_path / "home" / "workspace",
            "default",
        )

    def test_is_taken_from_argument_variable_memory_dir_and_file_in_this_order(self, place: Place) -> None:
        (place.root / "memory").mkdir()
        place.own_file.write_text("workspace: ./file")
        environ = {"STORAGE_DIR": str(place.home), "MEMORY_DIR": "dir", "MEMORITER_WORKSPACE": "variable"}
        origins = [load(environ=environ, cwd=place.root, arguments={"workspace": "here"}).origin("workspace")]
        for name in ("MEMORITER_WORKSPACE", "MEMORY_DIR"):
            origins.append(load(environ=environ, cwd=place.root).origin("workspace"))
            del environ[name]
        origins.append(load(environ=environ, cwd=place.root).origin("workspace"))
        assert origins == ["--workspace", "MEMORITER_WORKSPACE", "MEMORY_DIR", str(place.own_file)]

    def test_of_memory_dir_contains_notes_directly(self, tmp_path: Path) -> None:
        settings = load(environ={"MEMORY_DIR": "data/memory", "STORAGE_DIR": "data"}, cwd=tmp_path)
        data = tmp_path / "data"
        assert (settings.workspace, settings.files.extra_paths, settings.home) == (data, (), data)
        settings = load(environ={"MEMORY_DIR": "journal"}, cwd=tmp_path)
        assert (settings.workspace, settings.files.folder) == (tmp_path / "journal", ".")

    def test_of_the_current_folder_comes_before_the_file_if_init_set_it_up(self, place: Place) -> None:
        place.own_file.write_text("workspace: ./file")
        (place.root / "MEMORY.md").write_text("")
        environ = {"MEMORITER_HOME": str(place.home)}
        assert load(environ=environ, cwd=place.root).workspace == place.home / "file"
        (place.root / ".memoriter.yaml").write_text("")
        settings = load(environ=environ, cwd=place.root)
        assert (settings.workspace, settings.origin("workspace")) == (place.root, "the current folder")

    def test_is_found_from_its_subfolders(self, place: Place) -> None:
        place.own_file.write_text("workspace: ./file")
        marker = place.root / ".memoriter.yaml"
        marker.write_text("")
        deep = place.root / "projects" / "harbour"
        (deep / "memory").mkdir(parents=True)
        environ = {"MEMORITER_HOME": str(place.home)}
        settings = load(environ=environ, cwd=deep)
        assert (settings.workspace, settings.origin("workspace")) == (place.root, str(marker))
        (deep / ".memoriter.yaml").write_text("")
        assert load(environ=environ, cwd=deep).workspace == deep

    @pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give a file away")
    def test_is_not_chosen_by_a_file_of_another_user_above(self, place: Place) -> None:
        marker = place.root / ".memoriter.yaml"
        marker.write_text("")
        os.chown(marker, 65534, 65534)
        below = place.root / "below"
        below.mkdir()
        environ = {"MEMORITER_HOME": str(place.home)}
        assert load(environ=environ, cwd=below).origin("workspace") == "default"


@pytest.mark.parametrize("folder", ["", "/notes", "../notes", "notes/../..", ".hidden", "a/.git"])
def test_notes_are_written_inside_the_workspace(place: Place, folder: str) -> None:
    with pytest.raises(ConfigError, match=r"files\.folder .*must be a folder of the workspace"):
        place.load({"files.folder": folder})


def test_each_workspace_has_an_index_of_its_own(place: Place) -> None:
    (place.root / "vault").mkdir()
    (place.root / "link").symlink_to("vault")
    folders = {
        name: place.load({"workspace": place.root / name}).index_folder
        for name in ("vault", "link", "other/vault", "笔记")
    }
    assert folders["vault"] == folders["link"] != folders["other/vault"]
    assert [folder.parent for folder in folders.values()] == [place.home / "agents/main/workspaces"] * 4
    assert folders["笔记"].name.startswith("workspace-")


class TestCollections:
    def test_are_named_folders_with_or_without_a_pattern_and_a_trust(self, place: Place) -> None:
        place.own_file.write_text(
            "collections:\n  journal: ./journal\n  docs: {path: ../docs, pattern: '**/*.txt', trust: agent}\n"
        )
        home, settings = place.home, place.load()
        assert settings.extra_paths == (
            (home / "journal", "journal", None, "owner"),
            (home.parent / "docs", "docs", "**/*.txt", "agent"),
        )
        assert next(setting.value for setting in settings.describe() if setting.key == "collections") == {
            "journal": str(home / "journal"),
            "docs": {"path": str(home.parent / "docs"), "pattern": "**/*.txt", "trust": "agent"},
        }

    @pytest.mark.parametrize(
        ("collections", "reason"),
        [
            ({"a b": "/x"}, "cannot be the name of a collection"),
            ({"sessions": "/x"}, "cannot be the name of a collection"),
            ({"a": "/x", "b": "/x"}, "x is already the collection 'a'; choose another folder for 'b'"),
            ({"a": {"path": "/x", "pattern": "../*.md"}}, "must be patterns below a folder"),
            ({"a": {"pattern": "*.md"}}, "missing key 'path'"),
            ({"a": {"path": "/x", "trust": "mine"}}, "must be 'owner', 'agent' or 'untrusted'"),
        ],
    )
    def test_that_cannot_be_told_apart_are_refused(
        self, place: Place, collections: dict[str, object], reason: str
    ) -> None:
        with pytest.raises(ConfigError, match=reason):
            place.load({"collections": collections})

    def test_are_set_by_the_owner_only(self, place: Place) -> None:
        (place.root / ".memoriter.yaml").write_text("collections: {mail: ~/Mail}")
        with pytest.raises(UntrustedConfig, match=r"collections in .*a workspace's file may not set this"):
            place.load({"workspace": place.root})


def test_the_folder_of_the_agent_is_in_the_home(place: Place) -> None:
    assert place.load({"agent": "writer"}).agent_folder == place.home / "agents" / "writer"


def test_the_origin_of_an_unknown_setting_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"Unknown setting 'search.limit'"):
        Settings().origin("search.limit")


def test_every_setting_is_described() -> None:
    assert [key for key, field in keys().items() if not field.description] == []


SERVER = "postgresql://db.example.com/memory"


def test_a_named_workspace_is_refused_while_a_server_holds_the_notes(place: Place) -> None:
    place.environ["MEMORITER_STORE__URL"] = SERVER
    notes = place.root / "my notes"
    with pytest.raises(BadArgument) as refused:
        place.load({"workspace": notes})
    assert str(refused.value) == (
        f"The folder {notes} is not read, because a server holds the notes (`store.url`): leave out the workspace, "
        f"and run `memoriter push {quote(str(notes))}` to copy the notes to the server."
    )


@pytest.mark.parametrize("name", ["MEMORITER_WORKSPACE", "MEMORY_DIR"])
def test_a_variable_with_notes_is_refused_while_a_server_holds_the_notes(place: Place, name: str) -> None:
    notes = place.root / "notes"
    notes.mkdir()
    environ = {"MEMORITER_HOME": str(place.home), "MEMORITER_STORE__URL": SERVER, name: str(notes)}
    copy = load(environ=environ, cwd=place.root).workspace  # an empty folder has no notes that are missed
    (notes / "MEMORY.md").write_text("The harbour light faces north.")
    with pytest.raises(ConfigError) as refused:
        load(environ=environ, cwd=place.root)
    assert str(refused.value) == (
        f"The folder {notes} is not read, because a server holds the notes (`store.url`): unset {name}, "
        f"and run `memoriter push {quote(str(notes))}` to copy the notes to the server."
    )
    del environ[name]
    again = load(arguments={"workspace": copy}, environ=environ, cwd=place.root)
    assert again.workspace == copy
