"""The reader of changes at toy size on a CPU: pairs, a random language model as judge and writer, training, export."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.training import config as configuration
from lab.training import manifest, pairs
from lab.training.__main__ import main
from lab.training.overlap import Benchmarks
from memoriter.search.rerank import BUNDLED as RERANKER

torch = pytest.importorskip("torch", reason="lab/training/requirements.txt is not installed")
pytest.importorskip("onnx", reason="lab/training/requirements.txt is not installed")

from lab.training import engine, export, language, model, reader  # noqa: E402

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]

HIDDEN, WIDE, LAYERS = 256, 64, 3
EMBEDDER = RERANKER.parents[2] / "embedding" / "models" / "memoriter-embed-1"


def write_language_model(folder: Path) -> None:
    """Write random weights and a small tokenizer, in the format of an unpacked model."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder.mkdir(parents=True)
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=1_500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    texts = [path.read_text(encoding="utf-8") for path in sorted(pairs.SEEDS.iterdir())]
    made.train_from_iterator(texts, trainer)
    made.save(str(folder / "tokenizer.json"))
    shapes = {"output.weight": (made.get_vocab_size(), HIDDEN), "output_norm.weight": (HIDDEN,)}
    for number in range(LAYERS):
        layer = {"attn_q": (HIDDEN, HIDDEN), "attn_k": (128, HIDDEN), "attn_v": (128, HIDDEN)}
        shapes |= {f"blk.{number}.{name}.weight": shape for name, shape in layer.items()}
        shapes |= {f"blk.{number}.{name}.bias": shape[:1] for name, shape in layer.items()}
        rest = {"attn_output": (HIDDEN, HIDDEN), "ffn_gate": (WIDE, HIDDEN), "ffn_up": (WIDE, HIDDEN)}
        rest |= {"ffn_down": (HIDDEN, WIDE), "attn_norm": (HIDDEN,), "ffn_norm": (HIDDEN,)}
        shapes |= {f"blk.{number}.{name}.weight": shape for name, shape in rest.items()}
    rng, index, parts, offset = np.random.default_rng(0), [], [], 0
    for name, shape in shapes.items():
        data = rng.normal(0, 0.05, shape).astype(np.float32).tobytes()
        index.append({"name": name, "type": 0, "shape": shape, "offset": offset})
        parts.append(data)
        offset += len(data)
    (folder / "weights.bin").write_bytes(b"".join(parts))
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")


def write_text(path: Path) -> None:
    """Write what a better model would have written: a few texts with lines about them."""
    path.mkdir(parents=True)
    rows, rng = list[dict[str, object]](), random.Random(1)
    for number in range(30):
        story = pairs.Story(rng, pairs.topics())
        tongue = pairs.LANGUAGES[number % 2]
        topic = story.topic.names["en"]
        rows.append(
            {
                "id": number,
                "role": "text",
                "lang": tongue,
                "topic": topic,
                "text": story.tell("earlier", tongue),
            }
        )
        rows += [
            {"id": number, "role": role, "lang": tongue, "text": story.tell(role, tongue)}
            for role in (*pairs.CHANGES, *pairs.STANDS)
        ]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (path / "written.jsonl").write_text("\n".join([*lines, '{"id": 3, "cut']), encoding="utf-8")


def test_pairs_to_model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = replace(configuration.TOY, rerank=replace(configuration.FINAL.rerank))
    monkeypatch.setitem(configuration.CONFIGS, "toy", toy)
    work, llm, bench = tmp_path / "work", tmp_path / "language", tmp_path / "bench"
    write_language_model(llm)
    bench.mkdir()
    known = pairs.from_templates(1, random.Random(toy.reader.seed))[0]
    (bench / "corpus.jsonl").write_text(json.dumps({"text": known.earlier}) + "\n", encoding="utf-8")
    common = ["--config", "toy", "--work", str(work), "--language", str(llm)]

    main(["pairs", *common, "--bench", str(bench), "--start", str(RERANKER)])
    drawn = pairs.read(work / "train.jsonl")
    assert {pair.kind.split()[0] for pair in drawn} == {"scene", "attribute", "template"}
    assert known.earlier not in {pair.earlier for pair in drawn}

    main(["judge", *common])
    main(["write", *common, "--bench", str(bench)])
    counts = json.loads((work / "written" / "counts.json").read_text(encoding="utf-8"))
    assert counts["batch"] >= 1
    assert "failed batch" not in counts

    write_text(tmp_path / "text")
    labelled = ["--judge", str(work / "judge"), "--written", str(tmp_path / "text")]
    main(["label", *common, *labelled, "--seconds", "300"])
    assert np.isfinite(np.load(work / "labels" / "scores.npz")["scores"]).all()

    main(["reader", *common, "--model", str(EMBEDDER)])
    figures = json.loads((work / "reader" / "reader.json").read_text(encoding="utf-8"))
    assert sorted(figures) == ["2", "3"]
    assert set(figures["2"]) >= {"scenes", "templates", "updates"}

    reranker, folder = tmp_path / "reranker", tmp_path / "changes"
    reranker.mkdir()
    for name in ("model.onnx", "manifest.json"):
        (reranker / name).write_bytes((RERANKER / name).read_bytes())
    main(["export", *common, "--reader", str(folder), "--reranker", str(reranker), "--layers", "3"])
    manifest.check(folder)
    manifest.check(reranker)
    found = [("Home: flat in Porto", "We live in Leeds now"), ("房租840", "房租涨到910了")]
    whole = work / "reader" / "model-float.onnx"
    assert np.allclose(in_onnx(whole, reranker, found), in_torch(work, found, toy), atol=0.005)
    # How far int8 moves the answer of a network that has learned nothing depends on the processor that trained it.
    # Its weights do not: each is at most half a step away.
    trained = dict(np.load(work / "reader" / "weights.npz"))
    for name, weights in export.read_reader(folder).items():
        step = np.abs(trained[name]).max(axis=-1, keepdims=True) / 63
        assert np.all(np.abs(weights - trained[name]) <= 0.51 * step + 1e-6), name
    assert np.isfinite(in_onnx(folder / "model.onnx", reranker, found)).all()


def encoded(pair: tuple[str, str]) -> tuple[list[int], int]:
    from tokenizers import Tokenizer

    opened = Tokenizer.from_file(str(EMBEDDER / "tokenizer.json"))
    first, second = (opened.encode(text).ids for text in pair)
    return [*first, *second[1:]], len(first)


def in_onnx(file: Path, reranker: Path, found: list[tuple[str, str]]) -> list[float]:
    import onnxruntime

    words, changes = (onnxruntime.InferenceSession(str(path)) for path in (reranker / "words.onnx", file))
    out = []
    for pair in found:
        ids, start = encoded(pair)
        kinds = np.array([[int(place >= start) for place in range(len(ids))]])
        mask = np.ones_like(kinds)
        feed = {"input_ids": np.array([ids]), "token_type_ids": kinds}
        given = words.run([export.WORDS], feed)[0]
        out.append(float(changes.run(["replaced"], {export.WORDS: given, "attention_mask": mask})[0][0]))
    return out


def in_torch(work: Path, found: list[tuple[str, str]], config: configuration.Config) -> list[float]:
    network = reader.Reader(dict(np.load(work / "start.npz")), 3, config).eval()
    parts = [np.load(path) for path in sorted((work / "reader").glob("reader-3_*.npz"))]
    own = {name: torch.from_numpy(part[name].astype(np.float32)) for part in parts for name in part.files}
    network.comparer.load_state_dict(own)
    out = []
    for pair in found:
        ids, start = encoded(pair)
        packed = replace(model.packed([ids]), kinds=(torch.arange(len(ids)) >= start).long())
        with torch.no_grad():
            out.append(float(network(packed)[0]))
    return out


def test_lines_are_asked_for_in_both_languages(tmp_path: Path) -> None:
    write_language_model(tmp_path / "language")
    config = replace(configuration.TOY.engine, seconds=60, line_tokens=3, crossed=0.5)
    made = engine.Engine(
        tmp_path / "language", tmp_path, config, Benchmarks([], configuration.TOY.data), "cpu", print
    )
    made.texts = [
        {"id": number, "role": "text", "lang": tongue, "topic": "rent", "text": text}
        for number, (tongue, text) in enumerate([("en", "rent: 840"), ("zh", "房租840，三号交")] * 4)
    ]
    for role in ("implied", "question"):
        made._round(role, 0)
    made.out.close()
    asked = {role: sum(n for name, n in made.counts.items() if name.startswith(role)) for role in engine.ASKS}
    assert asked == dict.fromkeys(engine.ASKS, 0) | {"implied": 8, "question": 8}


def test_lines_that_cannot_be_used_are_dropped() -> None:
    source = "my rent is 840 a month"
    assert {
        text: engine.fault(text, tongue, source)
        for tongue, text in (
            ("en", "the rent went up to 910 in July"),
            ("en", "My rent is 840 a month."),
            ("en", "so so so so so so so so so"),
            ("en", "the rent is 房租 again"),
            ("en", "Later, it changed: 910"),
            ("zh", "the rent went up 房租"),
            ("en", "910"),
        )
    } == {
        "the rent went up to 910 in July": "",
        "My rent is 840 a month.": "copies",
        "so so so so so so so so so": "repeats",
        "the rent is 房租 again": "mixes languages",
        "Later, it changed: 910": "is a prompt",
        "the rent went up 房租": "mixes languages",
        "910": "length",
    }


def test_a_header_that_is_read_once_changes_nothing(tmp_path: Path) -> None:
    write_language_model(tmp_path / "language")
    network, tokenizer = language.open_folder(tmp_path / "language", "cpu")
    header = tokenizer.encode("Topic: gym\nText: I train at Fitline.\n\n").ids
    prompt = np.array([tokenizer.encode("Topic: rent\nText:").ids] * 2)
    always = language.Sampling(temperature=1e-4, limit=6, chunk=1)
    written = language.Writer(network, np.arange(tokenizer.get_vocab_size()), [], always).write(
        header, prompt
    )

    whole = [*header, *prompt[0]]
    for _ in range(6):
        with torch.no_grad():
            last = network(torch.tensor([whole]))[0, -1]
        whole.append(int((network.table @ last).argmax()))
    assert written == [whole[-6:]] * 2
