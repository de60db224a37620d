"""The whole training pipeline at toy size on a CPU, with invented teachers and a few hundred lines."""

from __future__ import annotations

import json
import lzma
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lab.training import config as configuration
from lab.training import evaluate, manifest
from lab.training.__main__ import main

torch = pytest.importorskip("torch", reason="lab/training/requirements.txt is not installed")
pytest.importorskip("onnx", reason="lab/training/requirements.txt is not installed")

from lab.training import model  # noqa: E402
from lab.training.rerank import build  # noqa: E402

if TYPE_CHECKING:
    from lab.training.model import Packed

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),
]

HIDDEN = 32
WORDS = "the a we you song train night garden paint owner object moves plays finds slow green old book"
HAN = "我你他们在有去了的花园火车夜晚歌书画对象属主移动慢老绿一是不这"


def sentence(rng: random.Random, end: str = ".") -> str:
    return " ".join(rng.choices(WORDS.split(), k=rng.randint(6, 14))) + end


def chinese(rng: random.Random, end: str = "。") -> str:
    return "".join(rng.choices(HAN, k=rng.randint(8, 20))) + end


def write_sources(folder: Path, rng: random.Random) -> None:
    files: dict[str, list[str]] = {"en": [], "zh": [], "pairs": []}
    for number in range(150):
        mark = "?" if number % 3 == 0 else "."
        files["en"].append(f"sgd\t{sentence(rng, mark)}")
        files["zh"].append(f"smile\t{chinese(rng, '？' if number % 3 == 0 else '。')}")
        files["pairs"].append(f"multiwoz_zh\t{sentence(rng, mark)}\t{chinese(rng)}")
    for number in range(60):
        heading = number % 5 == 0
        text = " ".join(sentence(rng) for _ in range(3)) if not heading else f"old owner {number}"
        other = chinese(rng) * 3 if not heading else f"老属主{number}"
        files["en"].append(f"mdn_en\t{text}")
        files["zh"].append(f"drcd\t{other}")
        files["pairs"].append(f"k8s\t{text}\t{other}")
    for name, rows in files.items():
        with lzma.open(folder / f"{name}.tsv.xz", "wt", encoding="utf-8") as out:
            out.write("\n".join(rows))


def write_tokenizer(path: Path, pieces: list[str]) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    numbers = {piece: number for number, piece in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(t, numbers[t]) for t in ("[CLS]", "[SEP]")],
    )
    made.save(str(path))


def write_teachers(folder: Path) -> None:
    """Return random weights with the names of the real ones after conversion."""
    folder.mkdir(parents=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = list("abcdefghijklmnopqrstuvwxyz.?0123456789")
    english = [*special, *letters, *("##" + c for c in letters), *WORDS.split()[2:]]
    han = [*special, *letters, *dict.fromkeys(HAN), "。", "？"]
    rng = np.random.default_rng(0)
    for name, pieces, layers in (
        ("bge-small-en", english, 2),
        ("bge-small-zh", han, 1),
        ("minilm", english, 6),
        ("cross-encoder", english, 1),
    ):
        np.savez(folder / f"{name}.npz", **weights(rng, len(pieces), layers))
        write_tokenizer(folder / f"{name}.tokenizer.json", pieces)


def weights(rng: np.random.Generator, pieces: int, layers: int) -> dict[str, np.ndarray]:
    def drawn(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.2, shape).astype(np.float32)

    found = {"word": drawn(pieces, HIDDEN), "position": drawn(512, HIDDEN), "type": drawn(2, HIDDEN)}
    found |= {"norm.w": np.ones(HIDDEN, np.float32), "norm.b": np.zeros(HIDDEN, np.float32)}
    found |= {"pool.w": drawn(HIDDEN, HIDDEN), "pool.b": drawn(HIDDEN)}
    found |= {"score.w": drawn(HIDDEN, 1), "score.b": drawn(1)}
    shapes = dict.fromkeys("qkvo", (HIDDEN, HIDDEN))
    shapes |= {"f1": (HIDDEN, 4 * HIDDEN), "f2": (4 * HIDDEN, HIDDEN)}
    for layer in range(layers):
        for name, shape in shapes.items():
            found[f"{layer}.{name}.w"], found[f"{layer}.{name}.b"] = drawn(*shape), drawn(shape[1])
        for name in ("n1", "n2"):
            found[f"{layer}.{name}.w"] = np.ones(HIDDEN, np.float32)
            found[f"{layer}.{name}.b"] = np.zeros(HIDDEN, np.float32)
    return found


def test_data_to_model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = configuration.TOY
    shape = replace(toy.student, hidden=HIDDEN, heads=1, english_pieces=200)
    small = replace(toy.rerank, hidden=HIDDEN, heads=1)
    data = replace(toy.data, max_lines=0, long_min=30, long_max=60)
    monkeypatch.setitem(configuration.CONFIGS, "toy", replace(toy, student=shape, data=data, rerank=small))
    work, folder = tmp_path / "work", tmp_path / "model"
    write_teachers(work / "teachers")
    write_sources(tmp_path, random.Random(5))
    common = ["--config", "toy", "--work", str(work)]

    main(["data", *common, "--data", str(tmp_path)])
    main(["tokenizer", *common])
    main(["train", *common, "--seconds", "0.001"])  # one step, then saved
    assert (work / "run" / "state.pt").exists()
    assert not (work / "run" / "weights.npz").exists()
    main(["train", *common])
    log = (work / "run" / "log.txt").read_text(encoding="utf-8")
    assert "resumed at step 1" in log
    assert '"seed"' in log
    main(["export", *common, "--model", str(folder)])

    manifest.check(folder)
    assert json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["dims"] == HIDDEN
    texts = ["we find the old book in the garden.", "我在花园", "slow train?"]
    found = evaluate.open_folder(folder)(texts)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert np.abs((found * in_torch(work, folder, texts)).sum(1) - 1).max() < 0.05

    rerank(tmp_path, common, work, folder)


def rerank(tmp_path: Path, common: list[str], work: Path, embedder: Path) -> None:
    """Train the reranker on what the embedder finds, and compare its int8 graph with the float weights."""
    folder = tmp_path / "reranker"
    both = [*common, "--model", str(embedder)]
    main(["rerank", *both, "--seconds", "0.001"])
    assert not (work / "rerank" / "weights.npz").exists()
    main(["rerank", *both])
    log = (work / "rerank" / "log.txt").read_text(encoding="utf-8")
    assert "resumed at step 1" in log
    figures = json.loads((work / "rerank" / "figures.json").read_text(encoding="utf-8"))
    assert sorted(figures) == ["chinese", "en-zh", "english", "zh-en", "zh-zh"]
    main(["export", *both, "--reranker", str(folder)])

    manifest.check(folder)
    described = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert described["tokenizer"] == {
        "of": "memoriter-embed-1",
        "sha256": manifest.digest(embedder / "tokenizer.json"),
    }
    pairs = [
        ("old book?", "we find the old book in the garden."),
        ("花园", "我在花园"),
        ("slow", "slow train?"),
    ]
    expected = scored_in_torch(work / "rerank", embedder, pairs)
    assert np.allclose(in_onnx(folder, embedder, pairs), expected, atol=0.1)


def encoded(embedder: Path, pairs: list[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids, mask and token types of padded pairs."""
    from tokenizers import Tokenizer

    opened = Tokenizer.from_file(str(embedder / "tokenizer.json"))
    rows = [(opened.encode(query).ids, opened.encode(text).ids[1:]) for query, text in pairs]
    longest = max(len(query) + len(text) for query, text in rows)
    ids, mask, kinds = (np.zeros((len(rows), longest), np.int64) for _ in range(3))
    for row, (query, text) in enumerate(rows):
        end = len(query) + len(text)
        ids[row, :end], mask[row, :end], kinds[row, len(query) : end] = query + text, 1, 1
    return ids, mask, kinds


def in_onnx(folder: Path, embedder: Path, pairs: list[tuple[str, str]]) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    feed = dict(zip(("input_ids", "attention_mask", "token_type_ids"), encoded(embedder, pairs), strict=True))
    return np.asarray(session.run(["logit"], feed)[0])


def packed_pairs(embedder: Path, pairs: list[tuple[str, str]]) -> Packed:
    ids, mask, kinds = map(torch.from_numpy, encoded(embedder, pairs))
    sizes = mask.sum(1)
    bounds = torch.nn.functional.pad(sizes.cumsum(0), (1, 0)).int()
    read = mask.bool()
    places = torch.arange(ids.shape[1]).expand_as(ids)[read]
    return model.Packed(ids[read], places, bounds, int(sizes.max()), kinds[read])


def scored_in_torch(run: Path, embedder: Path, pairs: list[tuple[str, str]]) -> np.ndarray:
    stored = {k: v.astype(np.float32) for k, v in np.load(run / "weights.npz").items()}
    reranker = build(stored, configuration.CONFIGS["toy"]).eval()
    with torch.no_grad():
        return np.asarray(reranker(packed_pairs(embedder, pairs)).numpy())


def in_torch(work: Path, folder: Path, texts: list[str]) -> np.ndarray:
    """Encode with the float weights, to compare the int8 graph with."""
    from tokenizers import Tokenizer

    from lab.training.model import Student, packed

    stored = np.load(work / "run" / "weights.npz")
    student = Student(len(stored["encoder.word.weight"]), HIDDEN, 2, 1).eval()
    student.load_state_dict({k: torch.from_numpy(stored[k].astype(np.float32)) for k in stored.files})
    opened = Tokenizer.from_file(str(folder / "tokenizer.json"))
    rows = []
    for text in texts:
        with torch.no_grad():
            rows.append(student(packed([opened.encode(text).ids]))[0].numpy())
    return np.stack(rows)
