"""Named collections, as a person uses them: a process in a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from person import Person

from memoriter.memory import Memory


class TestCollections:
    @pytest.fixture
    def vault(self, person: Person) -> Path:
        vault = person.folder("vault")
        person.run(vault, "init", "--all-notes")
        return vault

    def test_are_added_searched_listed_and_removed(self, person: Person, vault: Path) -> None:
        docs = person.folder("docs", {"a.md": "The heron is in the docs.\n", "b.rst": "A heron in a text.\n"})
        person.run(vault, "collection", "add", "docs", docs)
        assert sorted(person.found(vault, "heron")) == sorted([(docs / "a.md").as_posix(), "Inbox.md"])
        assert person.found(vault, "heron", "--collection", "docs") == [(docs / "a.md").as_posix()]
        assert "in the docs" in person.run(vault, "get", str(docs / "a.md"))
        person.run(vault, "collection", "add", "docs", docs, "--pattern", "**/*.rst")
        assert person.found(vault, "heron", "-c", "docs") == [(docs / "b.rst").as_posix()]
        listed = json.loads(person.run(vault, "collection", "list", "--json"))
        assert listed["collections"] == [
            {"name": "docs", "path": str(docs), "pattern": "**/*.rst", "notes": 1, "trust": "owner"}
        ]
        assert "docs" in person.run(vault, "collection", "list")
        person.run(vault, "collection", "remove", "docs")
        assert person.found(vault, "heron") == ["Inbox.md"]
        assert (docs / "a.md").exists()

    def test_of_others_lower_the_trust_of_their_notes(self, person: Person, vault: Path) -> None:
        notes = {"a.md": "The otter sleeps.\n", "b.md": "---\ntrust: untrusted\n---\nThe otter swims.\n"}
        docs = person.folder("docs", {**notes, "c.md": "---\ntrust: owner\n---\nThe otter eats.\n"})

        def trusts() -> list[str]:
            hits = json.loads(person.run(vault, "search", "otter", "--json"))["results"]
            return [hit["trust"] for hit in sorted(hits, key=lambda hit: hit["path"])]

        person.run(vault, "collection", "add", "docs", docs, "--trust", "agent")
        assert trusts() == ["agent", "untrusted", "agent"]
        assert re.search(r"docs +\S+ +agent +3", person.run(vault, "collection", "list"))
        person.run(vault, "collection", "add", "docs", docs)
        assert trusts() == ["owner", "untrusted", "owner"]
        person.run(vault, "collection", "add", "docs", docs, "--trust", "untrusted")
        assert trusts() == ["untrusted"] * 3

    def test_that_are_wrong_get_a_clear_sentence(self, person: Person, vault: Path) -> None:
        docs = person.folder("docs", {})
        add = ("collection", "add")
        for place in ("nowhere", str(vault / "nowhere")):
            assert f"'{place}' is not a folder" in person.run(vault, *add, "docs", place, fails=True)
        assert "cannot be the name of a collection" in person.run(vault, *add, "a b", docs, fails=True)
        assert person.config() == {"workspace": str(vault)}
        assert person.run(vault, *add, "memory", docs, fails=True).endswith(
            "Error: Invalid value: 'memory' cannot be the name of a collection: use letters, digits, '-' and '_', "
            "and not memory, memory-root, sessions or extra-1.\n"
        )
        assert "There is no collection 'docs'. Add one with `memoriter collection add`." in person.run(
            vault, "collection", "remove", "docs", fails=True
        )
        person.run(vault, *add, "docs", docs)
        assert person.run(vault, *add, "more", docs, fails=True).endswith(
            f"Error: Invalid value: {docs} is already the collection 'docs'; choose another folder for 'more', or run "
            "`memoriter collection remove docs` first.\n"
        )
        assert "There is no collection 'dogs'. Collections: docs." in person.run(
            vault, "search", "heron", "-c", "dogs", fails=True
        )
        docs.rmdir()
        assert "does not exist" in person.run(vault, "search", "heron", "-c", "docs", fails=True)
        assert "folder does not exist" in person.run(vault, "collection", "list")

    def test_limit_a_search_in_python_and_in_tools(self, person: Person, vault: Path) -> None:
        docs = person.folder("docs", {"a.md": "The heron is in the docs.\n"})
        overrides = {"collections": {"docs": str(docs)}, "embedding.provider": "none"}
        with Memory.open(vault, home=person.root / "home", overrides=overrides) as memory:
            assert [hit.path for hit in memory.search("heron", collection="docs").hits] == [
                (docs / "a.md").as_posix()
            ]
            assert memory.search("石榴", collection="docs").hits == ()

    def test_inside_the_workspace_and_of_the_whole_workspace_contain_only_their_notes(
        self, person: Person, vault: Path
    ) -> None:
        docs = person.folder("docs", {"a.md": "The heron is in the docs.\n"})
        collections = {"docs": str(docs), "projekte": str(vault / "Projekte"), "all": str(vault)}
        overrides = {"collections": collections, "embedding.provider": "none"}
        with Memory.open(vault, home=person.root / "home", overrides=overrides) as memory:
            found = {
                name: sorted(
                    hit.path for hit in memory.search("heron 石榴", collection=name, min_score=0).hits
                )
                for name in collections
            }
        assert found == {
            "docs": [(docs / "a.md").as_posix()],
            "projekte": ["Projekte/Garten.md"],
            "all": ["Inbox.md", "Projekte/Garten.md"],
        }
