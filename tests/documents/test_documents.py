"""PDF and Word files are searched and read like notes, and never changed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from document_files import make_pdf, make_word
from pypdf import PdfReader

import memoriter
from memoriter import Memory
from memoriter.errors import PathRefused
from memoriter.extensions.documents import pdf, word


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    files = {
        "lease.pdf": make_pdf(["The flat has two rooms.", "", "The deposit is three months of rent."]),
        "boiler.docx": make_word(),
        "scan.pdf": make_pdf(["", ""]),
        "secret.pdf": make_pdf(["Nothing to see."], password="x"),
        "broken.pdf": b"%PDF-1.7 broken",
        "broken.docx": b"PK broken",
    }
    for name, data in files.items():
        (notes / name).write_bytes(data)
    with memoriter.open(tmp_path / "notes", home=tmp_path / "home") as opened:
        yield opened


def test_a_search_cites_the_page_of_a_pdf(memory: Memory) -> None:
    hit = memory.search("deposit rent").hits[0]
    assert (hit.citation, hit.trust) == ("memory/lease.pdf#page=3&L8-L10", "untrusted")
    assert memory.read(hit.citation).text.endswith("The deposit is three months of rent.")


def test_short_pages_are_cited_one_by_one(memory: Memory, tmp_path: Path) -> None:
    pages = [
        "Cats.",
        "The deposit is ten euros.",
        "Keys: two.",
        "x",
        "The cellar has a deposit for bicycles.",
    ]
    (tmp_path / "notes/memory/rules.pdf").write_bytes(make_pdf(pages))
    cited = {
        hit.citation.partition("&")[0] for hit in memory.search("deposit ten euros cellar bicycles keys").hits
    }
    assert cited >= {f"memory/rules.pdf#page={number}" for number in (2, 3, 5)}


def test_a_word_file_keeps_its_headings_lists_and_tables(memory: Memory) -> None:
    assert memory.search("boiler installed").hits[0].path == "memory/boiler.docx"
    assert memory.read("memory/boiler.docx").text.splitlines()[3::2] == [
        "# Boiler",
        "The boiler was installed in 2019.",
        "- Check the pressure.",
        "| Maker | Vaillant |",
    ]


def test_files_without_readable_text_are_named_with_the_reason(memory: Memory) -> None:
    assert {problem.path: problem.reason for problem in memory.sync(verify=True).problems} == {
        "memory/broken.docx": "The Word file is damaged, has a password, or is not a .docx file.",
        "memory/broken.pdf": "The PDF file is damaged, or made in a way that cannot be read.",
        "memory/lease.pdf": "page 2 without text, probably scanned",
        "memory/scan.pdf": "None of the 2 pages has text. They are probably scanned images.",
        "memory/secret.pdf": "The PDF file needs a password. Save a copy without one to index it.",
    }


def test_a_document_cannot_be_edited(memory: Memory) -> None:
    with pytest.raises(PathRefused, match="reads and never changes"):
        memory.notes.text("memory/lease.pdf")


def test_pages_beyond_the_limit_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MAX_PAGES", 1)
    text, remark = pdf.read(make_pdf(["one", "two"]))
    assert (text.count("# Page"), remark) == (1, "only the first 1 of 2 pages are indexed")


def test_a_word_file_that_fills_the_memory_is_refused_before_it_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(word, "MAX_UNPACKED", 1000)
    with pytest.raises(memoriter.errors.SourceError, match="too large when it is unpacked"):
        word.read(make_word())


def test_the_pdf_of_the_tests_is_one() -> None:
    assert len(PdfReader(io.BytesIO(make_pdf(["a", "b"]))).pages) == 2
