from __future__ import annotations

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.files.globs import PathGlobs, matches


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.MD", True),
        ("**/*.md", "x/.hidden/a.md", False),
        ("**/*.md", ".a.md", False),
        ("*.md", "x/a.md", False),
        ("notes/**", "notes/a/b.txt", True),
        ("notes/**", "notes", False),
        ("./docs/*.md", "docs/a.md", True),
        ("a/**/b/**/c.md", "a/x/b/b/y/c.md", True),
        ("a/**/b/**/c.md", "a/x/y/c.md", False),
        (".github/*.md", ".github/a.md", True),
        ("note?.md", "note1.md", True),
        ("note?.md", "note.md", False),
    ],
)
def test_a_path_matches_a_glob(glob: str, path: str, expected: bool) -> None:
    assert PathGlobs((glob,)).matches(path) is expected


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=16))
def test_names_match_as_in_the_standard_library(glob: str, name: str) -> None:
    assert matches(glob, name) is fnmatch.fnmatchcase(name, glob)


def test_no_glob_hangs() -> None:
    begun = time.process_time()
    assert not matches("*a" * 60 + "b", "a" * 250)
    assert not PathGlobs(("**/" * 40 + "x.md",)).matches("/".join("a" * 100))
    assert time.process_time() - begun < 2.0
