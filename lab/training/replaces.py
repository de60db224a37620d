"""Train the second answer of the reranker: whether a newer line replaces an older one.

The reranker stays as it is. The second answer reads the output of its first layers and has a last layer of its own. For
an older line it finds the one that replaces it among lines that are near: lines of the same scene that replace nothing,
lines of other scenes that are similar, and the same change of another person or project.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lab.training import export, model, prepare, rerank, scenes
from lab.training.config import Config
from lab.training.scenes import Scene, Scenes
from lab.training.tokens import Tokens, autocast, batches, vectors
from lab.training.train import Log

#: Lines of the same scene in a list, beside the one that replaces.
_NEAR = 3


@dataclass(frozen=True)
class Batch:
    """Older and newer lines by number, in lists of equal size. Where a line replaces the older one, it is the first."""

    older: np.ndarray
    newer: np.ndarray
    answered: np.ndarray


class Sampler:
    """Draws the lists of a step."""

    def __init__(self, told: Scenes, near: dict[int, np.ndarray], config: Config) -> None:
        self.told, self.near, self.config = told, near, config.replaces
        self.rng = np.random.default_rng(config.replaces.seed)

    def draw(self) -> Batch:
        """Draw one step."""
        found = [self._list() for _ in range(self.config.lists)]
        return Batch(
            np.repeat(np.array([older for older, _, _ in found]), self.config.size),
            np.concatenate([newer for _, newer, _ in found]),
            np.array([answered for _, _, answered in found]),
        )

    def _scene(self) -> Scene:
        return self.told.train[self.rng.integers(len(self.told.train))]

    def _list(self) -> tuple[int, np.ndarray, bool]:
        rng, told, scene = self.rng, self.told, self._scene()
        way = int(rng.integers(told.ways))
        answered = bool(rng.random() < self.config.answered)
        old, new = rng.choice(scene.old), rng.choice(scene.new)
        found = [told.text(new, way)] if answered else []
        if not answered and rng.random() < 0.5:
            old = new
        same = [line for line in (scene.old if old in scene.old else scene.new) if line != old]
        found.append(told.text(rng.choice(same), way))
        found += [told.text(line, way) for line in rng.permutation(scene.near)[:_NEAR]]
        if old not in scene.new and told.is_about_same(old, new):
            found.append(told.text(new, way + 1 + int(rng.integers(told.ways - 1))))
        hard = rng.permutation(self.near[old][self.config.skip :])
        found += [told.text(line, way) for line in hard[: self.config.size - 2 - len(found)]]
        while len(found) < self.config.size:
            other = self._scene()
            if other is not scene:
                found.append(told.text(rng.choice(other.lines), way))
        return told.text(old, way), np.array(found), answered


class Trainer(rerank.Trainer):
    """One run."""

    def __init__(
        self, out: Path, config: Config, sampler: Sampler, tokens: Tokens, reranker: model.Reranker, log: Log
    ) -> None:
        self.out, self.config, self.sampler, self.log = out, config.replaces, sampler, log  # type: ignore[assignment]
        self.limits = (config.rerank.max_query, config.rerank.max_text)
        self.tokens, self.device = tokens, tokens.device
        self.reranker = reranker.to(self.device).eval().requires_grad_(False)
        self.network = _begin(reranker, config).to(self.device)  # type: ignore[assignment]
        self.average = copy.deepcopy(self.network).eval()
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(),
            lr=self.config.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=self.config.weight_decay,
            fused=self.device == "cuda",
        )
        self.step = 0

    def compare(self, network: torch.nn.Module, older: np.ndarray, newer: np.ndarray) -> Tensor:
        """Return the logits of pairs."""
        encoder = self.reranker.encoder
        with autocast(self.device):
            pairs = self.tokens.paired(older, newer, self.limits)
            with torch.no_grad():
                x = encoder(pairs, len(encoder.layers) - self.config.layers)  # type: ignore[attr-defined]
            return network(x, pairs).float()

    def losses(self, batch: Batch) -> dict[str, Tensor]:  # type: ignore[override]
        """Return the losses of a step."""
        logits = self.compare(self.network, batch.older, batch.newer).view(len(batch.answered), -1)
        answered = torch.from_numpy(batch.answered).to(self.device)
        labels = torch.zeros_like(logits)
        labels[answered, 0] = 1.0
        first = torch.zeros(int(answered.sum()), dtype=torch.long, device=self.device)
        return {
            "each": functional.binary_cross_entropy_with_logits(logits, labels),
            "ranking": self.config.ranking * functional.cross_entropy(logits[answered], first),  # type: ignore[attr-defined]
        }

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """Return figures of the scenes that were held out, with lines of other scenes as candidates.

        How often the line that replaces an older one has the highest logit, how often its probability is at least one
        half, and how often that of another line is.
        """
        told, near = self.sampler.told, self.sampler.near
        lists = [
            (old, [new, *scene.near, *near[old][: self.config.near]])  # type: ignore[attr-defined]
            for scene in told.held_out
            for old in scene.old[::2]
            for new in scene.new[::2]
        ]
        older = np.concatenate([np.repeat(old, len(lines)) for old, lines in lists])
        newer = np.concatenate([np.array(lines) for _, lines in lists])
        logits = torch.zeros(len(older))
        for part in batches(self.tokens.lengths[older] + self.tokens.lengths[newer], 16_384):
            logits[torch.from_numpy(part)] = self.compare(self.average, older[part], newer[part]).cpu()
        found = logits.numpy()
        ends = np.cumsum([len(lines) for _, lines in lists])
        figures = [
            (part[0] > part[1:].max(), part[0] >= 0, part[1:].max() >= 0)
            for part in np.split(found, ends[:-1])
        ]
        means = np.mean(np.array(figures, float), axis=0)
        return dict(zip(("first", "right", "wrong"), (round(float(mean), 4) for mean in means), strict=True))

    def finish(self) -> None:
        """Write the weights, with those of the reranker, and the figures."""
        own = {f"comparer.{name}": value for name, value in self.average.state_dict().items()}
        whole = {**self.reranker.state_dict(), **own}
        np.savez(self.out / "weights.npz", **{k: v.half().cpu().numpy() for k, v in whole.items()})
        figures = self.measure()
        (self.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
        self.log("held-out scenes", figures)


def _begin(reranker: model.Reranker, config: Config) -> model.Comparer:
    """Return a network that starts with the reranker's last layers."""
    shape = config.rerank
    network = model.Comparer(shape.hidden, config.replaces.layers, shape.heads, config.replaces.dropout)
    layers = list(reranker.encoder.layers)[-config.replaces.layers :]
    for own, given in zip(network.layers, layers, strict=True):
        own.load_state_dict(given.state_dict())
    network.pool.load_state_dict(reranker.pool.state_dict())
    return network


def run(out: Path, configs: dict[str, Config], embedder: Path, start: Path) -> None:
    """Train with the reranker in `start`, and write `weights.npz`, `figures.json` and `log.txt` to `out`.

    Several configurations are trained in turn, each in its own folder in `out`.
    """
    from tokenizers import Tokenizer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    first = next(iter(configs.values()))
    told = scenes.load(scenes.FOLDER, first.replaces.ways, first.replaces.held_out)
    tokenizer = Tokenizer.from_file(str(embedder / "tokenizer.json"))
    tokens = Tokens(tokenizer, told.texts, first.student.max_length, device)
    found = vectors(prepare.load_student(embedder).to(device), tokens, np.arange(told.count))
    given = found.float().cpu().numpy()
    near = {
        **scenes.rivals(told.train, given, first.replaces.near),
        **scenes.rivals(told.held_out, given, first.replaces.near),
    }
    for name, config in configs.items():
        target = out / name if len(configs) > 1 else out
        log = Log(target / "log.txt")
        log("scenes", told.digest(), device, json.dumps(config.as_dict()["replaces"]))
        torch.manual_seed(config.replaces.seed)
        reranker = rerank.build(export.read(start), config)
        trainer = Trainer(target, config, Sampler(told, near, config), tokens, reranker, log)
        trainer.train(0)
        trainer.finish()
