"""Fine-tune the reranker with scenes, and teach it a second answer: whether a newer line replaces an older one.

A step has three kinds of pairs. Queries and texts of the training data keep the logits that they had before. Questions
of scenes find the line that answers among lines that are near. Pairs of an older and a newer line say whether the newer
one replaces the older one; this answer has a head of its own.
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

from training import dataset, export, model, prepare, rerank, scenes
from training.config import Config
from training.scenes import Scene, Scenes
from training.tokens import Tokens, autocast, batches, vectors
from training.train import Log

#: Neighbours of a text of the training data that are candidates too.
_AROUND = (-3, -2, -1, 0, 1, 2, 3)
#: What a newer line is, with its share of the pairs.
_NEWER = (("new", 0.45), ("near", 0.2), ("other", 0.2), ("near of new", 0.05), ("same", 0.1))


@dataclass(frozen=True)
class Batch:
    """Pairs of texts by number: lists to keep, lists of scenes, then older and newer lines."""

    queries: np.ndarray
    texts: np.ndarray
    kept: int  # pairs of the training data
    listed: int  # pairs of the scenes' lists, the answer first
    answered: np.ndarray  # whether a list of scenes has an answer
    replaced: np.ndarray  # for each of the last pairs


class Sampler:
    """Draws the pairs of a step."""

    def __init__(
        self, data: dataset.Dataset, told: Scenes, near: dict[int, np.ndarray], config: Config
    ) -> None:
        self.data, self.told, self.near, self.config = data, told, near, config.tune
        self.rng = np.random.default_rng(config.tune.seed)
        #: Where the texts of the scenes begin: after the English and the Chinese ones.
        self.english, self.chinese = len(data.texts["en"]), len(data.texts["zh"])
        self.first = self.english + self.chinese

    def draw(self) -> Batch:
        """Draw one step."""
        config = self.config
        kept = [self._kept() for _ in range(config.lists)]
        listed = [self._listed(self._scene(self.told.train)) for _ in range(config.questions)]
        pairs = [self._pair() for _ in range(config.pairs)]
        queries = [np.repeat(query, len(texts)) for query, texts in kept]
        queries += [np.repeat(query, len(texts)) for query, texts, _ in listed]
        texts = [*(texts for _, texts in kept), *(texts for _, texts, _ in listed)]
        return Batch(
            np.concatenate([*queries, np.array([old for old, _, _ in pairs])]),
            np.concatenate([*texts, np.array([new for _, new, _ in pairs])]),
            config.lists * config.size,
            config.questions * config.size,
            np.array([answered for _, _, answered in listed]),
            np.array([label for _, _, label in pairs], np.float32),
        )

    def _kept(self) -> tuple[int, np.ndarray]:
        """Return a query of the training data with its text, the texts around that, and others at random."""
        rng, data = self.rng, self.data
        kind = rng.integers(3)
        if kind == 2:
            query, text = data.pair_asks[rng.integers(len(data.pair_asks))]
            sides = rng.integers(2, size=2)
            around = np.clip(text + np.array(_AROUND), 0, len(data.pairs) - 1)
            others = rng.integers(len(data.pairs), size=self.config.size - len(around))
            offset = np.array([0, self.english])
            found = data.pairs[np.concatenate([around, others]), sides[1]] + offset[sides[1]]
            return int(data.pairs[query, sides[0]] + offset[sides[0]]), found
        language, offset_of = dataset.LANGUAGES[kind], (0, self.english)[kind]
        query, text = data.asks[language][rng.integers(len(data.asks[language]))]
        count = len(data.texts[language])
        around = np.clip(text + np.array(_AROUND), 0, count - 1)
        others = rng.integers(count, size=self.config.size - len(around))
        return int(query + offset_of), np.concatenate([around, others]) + offset_of

    def _scene(self, among: list[Scene]) -> Scene:
        return among[self.rng.integers(len(among))]

    def _text(self, number: int) -> int:
        """Return the number of a text with its placeholders filled in the way of this draw."""
        return self.first + int(number) + self.way * self.told.count

    def _listed(self, scene: Scene) -> tuple[int, np.ndarray, bool]:
        """Return a question with one answer, if there is one, and lines that are near."""
        rng, size = self.rng, self.config.size
        self.way = int(rng.integers(self.told.ways))
        question = rng.choice(scene.questions)
        answered = bool(scene.answers) and rng.random() < self.config.answered
        found = [rng.choice(scene.answers)] if answered else []
        found += list(rng.permutation(scene.near)[:4])
        hard = self.near[question][self.config.skip :]
        found += list(rng.permutation(hard)[: size - 2 - len(found)])
        while len(found) < size:
            other = self._scene(self.told.train)
            if other is not scene:
                found.append(rng.choice(other.lines))
        return self._text(question), np.array([self._text(one) for one in found]), answered

    def _pair(self) -> tuple[int, int, bool]:
        """Return an older and a newer line, and whether the newer one replaces the older one."""
        rng, scene = self.rng, self._scene(self.told.train)
        while not scene.new:
            scene = self._scene(self.told.train)
        self.way = int(rng.integers(self.told.ways))
        kind = rng.choice([name for name, _ in _NEWER], p=[share for _, share in _NEWER])
        old, new = rng.choice(scene.old), rng.choice(scene.new)
        if kind == "other":
            old = old if rng.random() < 0.7 else new
            newer = rng.choice(self.near[old][self.config.skip :])
        elif kind == "near of new":
            old, newer = new, rng.choice(scene.near)
        elif kind == "same":
            old, newer = rng.choice(scene.old if rng.random() < 0.5 else scene.new, 2, replace=False)
        else:
            newer = new if kind == "new" else rng.choice(scene.near)
        return self._text(old), self._text(newer), kind == "new"


class Trainer(rerank.Trainer):
    """One run. The first network is the teacher of what is kept."""

    def __init__(
        self, out: Path, config: Config, sampler: Sampler, tokens: Tokens, start: model.Reranker, log: Log
    ):
        self.out, self.config, self.sampler, self.log = out, config.tune, sampler, log  # type: ignore[assignment]
        self.limits = (config.rerank.max_query, config.rerank.max_text)
        self.tokens, self.device = tokens, tokens.device
        self.network = start.to(self.device)
        self.before = copy.deepcopy(self.network).eval()
        self.average = copy.deepcopy(self.network).eval()
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(),
            lr=self.config.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=self.config.weight_decay,
            fused=self.device == "cuda",
        )
        self.step = 0

    def both(self, network: model.Reranker, queries: np.ndarray, texts: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return both logits of pairs."""
        with autocast(self.device):
            answers, replaces = network.both(self.tokens.paired(queries, texts, self.limits))
        return answers.float(), replaces.float()

    def losses(self, batch: Batch) -> dict[str, Tensor]:  # type: ignore[override]
        """Return the losses of a step."""
        config, size = self.config, self.config.size
        answers, replaces = self.both(self.network, batch.queries, batch.texts)
        with torch.no_grad():
            wanted, _ = self.both(self.before, batch.queries[: batch.kept], batch.texts[: batch.kept])
        end = batch.kept + batch.listed
        lists = answers[batch.kept : end].view(-1, size)
        answered = torch.from_numpy(batch.answered).to(self.device)
        labels = torch.zeros_like(lists)
        labels[answered, 0] = 1.0
        first = torch.zeros(int(answered.sum()), dtype=torch.long, device=self.device)
        replaced = torch.from_numpy(batch.replaced).to(self.device)
        return {
            "kept": rerank.listwise(
                answers[: batch.kept].view(-1, size), wanted.view(-1, size), config.absolute
            ),
            "ranking": config.ranking * functional.cross_entropy(lists[answered], first),
            "each": config.each * functional.binary_cross_entropy_with_logits(lists, labels),
            "replaced": functional.binary_cross_entropy_with_logits(replaces[end:], replaced),
        }

    def save(self) -> None:
        """Write what a later process needs to resume, and log the figures so far."""
        super().save()
        self.log("held-out scenes at step", self.step, self.measure())

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """Return figures of the scenes that were held out: lines of other scenes are candidates too.

        MRR of the answer, AUROC of the best logit with and without the answer, and for a line with the old value: how
        often the new one has the highest probability, and how often one of 0.5 is right and another one wrong.
        """
        asked, compared = self._measured()
        answers = self._score([(question, [*known, *others]) for question, known, others in asked])[0]
        replaces = self._score([(old, [*known, *others]) for old, known, others in compared])[1]
        found: dict[str, list[float]] = {"mrr": [], "first": [], "right": [], "wrong": []}
        with_answer, without = list[float](), list[float]()
        for logits, (_, known, _) in zip(answers, asked, strict=True):
            best = float(logits[len(known) :].max())
            without.append(best)
            for logit in logits[: len(known)]:
                found["mrr"].append(1 / float(1 + (logits[len(known) :] > logit).sum()))
                with_answer.append(max(float(logit), best))
        for logits, (_, known, _) in zip(replaces, compared, strict=True):
            best = float(logits[len(known) :].max())
            found["first"] += [float(logit > best) for logit in logits[: len(known)]]
            found["right"] += [float(logit > 0) for logit in logits[: len(known)]]
            found["wrong"] += [float(best > 0)]
        ranks = np.argsort(np.argsort([*with_answer, *without])) + 1
        above = ranks[: len(with_answer)].sum() - len(with_answer) * (len(with_answer) + 1) / 2
        figures = {name: float(np.mean(values)) for name, values in found.items()}
        figures["silence"] = float(above / (len(with_answer) * len(without)))
        return {name: round(value, 4) for name, value in figures.items()}

    def _measured(
        self,
    ) -> tuple[list[tuple[int, list[int], list[int]]], list[tuple[int, list[int], list[int]]]]:
        """Return what is scored: questions with answers and other lines, old lines with new and other lines."""
        near, held = self.sampler.near, self.sampler.told.held_out
        asked = [
            (question, scene.answers[::2], [*scene.near, *near[question]])
            for scene in held
            for question in scene.questions
        ]
        compared = [
            (old, scene.new[::2], [*scene.near, *near[old]]) for scene in held for old in scene.old[::2]
        ]
        return asked, compared

    def _score(self, lists: list[tuple[int, list[int]]]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return both logits of the lines of each list."""
        queries = (
            np.concatenate([np.repeat(query, len(lines)) for query, lines in lists]) + self.sampler.first
        )
        texts = np.concatenate([np.array(lines) for _, lines in lists]) + self.sampler.first
        logits = torch.zeros(2, len(queries))
        lengths = self.tokens.lengths[queries] + self.tokens.lengths[texts]
        for part in batches(lengths, 400_000 if self.device == "cuda" else 16_384):
            logits[:, torch.from_numpy(part)] = torch.stack(
                self.both(self.average, queries[part], texts[part])
            ).cpu()
        cuts = np.cumsum([len(lines) for _, lines in lists])[:-1]
        answers, replaces = (np.split(each.numpy(), cuts) for each in logits)
        return answers, replaces


def run(work: Path, out: Path, configs: dict[str, Config], embedder: Path, start: Path) -> None:
    """Fine-tune the reranker in `start`, and write `weights.npz`, `figures.json` and `log.txt` to `out`.

    Several configurations are trained in turn, each in its own folder in `out`.
    """
    from tokenizers import Tokenizer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    first = next(iter(configs.values()))
    if first.rerank.compile:
        model.compile_layers(device)
    data = dataset.load(work)
    told = scenes.load(scenes.FOLDER, first.tune.ways, first.tune.held_out)
    tokenizer = Tokenizer.from_file(str(embedder / "tokenizer.json"))
    texts = [*data.texts["en"], *data.texts["zh"], *told.texts]
    tokens = Tokens(tokenizer, texts, first.student.max_length, device)
    encoder = prepare.load_student(embedder).to(device)
    begin = len(texts) - len(told.texts)
    found = vectors(encoder, tokens, np.arange(begin, begin + told.count)).float().cpu().numpy()
    near = {
        **scenes.rivals(told.train, found, first.tune.near),
        **scenes.rivals(told.held_out, found, first.tune.near),
    }
    for name, config in configs.items():
        target = out / name if len(configs) > 1 else out
        log = Log(target / "log.txt")
        log("data", data.digest(), told.digest(), device, json.dumps(config.as_dict()["tune"]))
        torch.manual_seed(config.tune.seed)
        network = rerank.build(export.read(start), config)
        trainer = Trainer(target, config, Sampler(data, told, near, config), tokens, network, log)
        log("held-out scenes before", trainer.measure())
        trainer.train(0)
        trainer.finish()
