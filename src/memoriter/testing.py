"""Helpers for tests, of this package and of yours.

`HashEmbedder` is an embedder without a model, `FailingEmbedder` one that fails on purpose, `ScriptedChat` a language
model with fixed answers, and `sample_workspace` writes a small bilingual workspace.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.errors import ChatError, EmbeddingError
from memoriter.llm.chat import Reply, Schema
from memoriter.records import Identity
from memoriter.text import tokenize

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix


class HashEmbedder:
    """An embedder without a model: each token has its own direction.

    Texts with common words are similar, and others are nearly orthogonal. The embedder counts its texts, so that a test
    can check what was not embedded again.
    """

    def __init__(self, dims: int = 64) -> None:
        self._identity = Identity("hash", "hash", dims)
        self._lock = threading.Lock()
        #: Documents embedded so far.
        self.texts = 0
        self.queries = 0

    @property
    def identity(self) -> Identity:
        """The identity of the vectors."""
        return self._identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of documents."""
        with self._lock:
            self.texts += len(texts)
        return self._vectors(texts)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query."""
        with self._lock:
            self.queries += 1
        vector: Matrix = self._vectors([text])[0]
        return vector

    def close(self) -> None:
        """Do nothing."""

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        from memoriter.embedding.guarded import clean

        rows = np.zeros((len(texts), self._identity.dimensions), dtype=np.float64)
        for row, text in zip(rows, texts, strict=True):
            for token in set(tokenize(text)):
                digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                place = int.from_bytes(digest, "big")
                # Two dimensions per token, each with a sign: fewer accidental similarities than with one.
                row[place % len(row)] += 1 if place & 1 << 62 else -1
                row[(place >> 24) % len(row)] += 1 if place & 1 << 61 else -1
        return clean(rows)


class FailingEmbedder(HashEmbedder):
    """An embedder that works for its first `after` calls and then fails, until `heal` is called."""

    def __init__(self, after: int = 0, dims: int = 64, message: str = "the embedder is out of order") -> None:
        super().__init__(dims)
        self._left: float = after
        self._message = message

    def heal(self) -> None:
        """Stop failing."""
        self._left = float("inf")

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        with self._lock:
            self._left -= 1
            if self._left < 0:
                raise EmbeddingError(self._message)
        return super()._vectors(texts)


class ScriptedChat:
    """A language model that gives fixed answers in turn. An answer that is an error is raised."""

    name = "scripted/chat"

    def __init__(self, *answers: str | ChatError) -> None:
        self._answers = list(answers)
        #: The prompts so far.
        self.asked: list[str] = []

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:  # noqa: ARG002
        """Return the next answer."""
        self.asked.append(f"{system}\n\n{user}")
        answer = self._answers.pop(0) if self._answers else ChatError("the script has no more answers")
        if isinstance(answer, ChatError):
            raise answer
        return Reply(answer, len(user) // 4, min(max_tokens, len(answer) // 4))

    def close(self) -> None:
        """Do nothing."""


def sample_workspace(folder: Path) -> Path:
    """Write a small workspace in English and Chinese into the folder, and return the folder."""
    for name, text in NOTES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


#: The sample workspace, by path.
NOTES = {
    "MEMORY.md": """\
# What I should always know

## About Mira
- Mira Chen and her partner Tomás have a studio in Lisbon, where they build a plant-care app called **Fern**.
- Prefers short answers with the command first and the explanation after.
- Vegetarian, allergic to hazelnuts. Coffee only before noon.
- Her calls are in the morning; afternoons are for writing code and are not to be interrupted.

## Standing decisions
- Fern's server is written in Python, the app in Kotlin. No second web framework without a talk first.
- Invoices go out on the first working day of the month, always in euros.
- Nothing is deployed on a Friday after lunch.

## 约定
- 和妈妈说话用中文，和客户说话用英文。
- 重要的决定写进 `memory/`，当天的事写进当天的日记。
""",
    "memory/2026-02-03.md": """\
# 2026-02-03

## Morning
- Call with the garden centre in Porto: watering reminders should pause while a customer is on holiday.
- Promised them a price by next Tuesday. Tomás thinks 1,800 euros is fair.

## Afternoon
- The app froze on old phones when a photo had more than 12 megapixels. Maps are now shrunk first.
- Error code for it in the log: `ERR_IMAGE_TOO_LARGE`.
""",
    "memory/2026-02-08.md": """\
# 2026-02-08

## 服务器
- 凌晨硬盘满了，网站停了四十分钟。原因是旧的日志一直没有清理。
- 已经设好：日志只留十四天，硬盘用到八成就发邮件。

## Evening
- Sourdough, second attempt: 75 % hydration, overnight in the fridge. Much better crust than last week.
- Tomás' birthday is on 19 March. Idea: the ceramics workshop in Alfama that he keeps talking about.
""",
    "memory/2026-02-14.md": """\
# 2026-02-14

- Renewed the domain fern.garden for three years, 41 euros.
- 妈妈下个月来里斯本，住两个星期，航班 TP928，3 月 21 日下午到。
- Moved the staging server from the cupboard to a rented machine in Frankfurt.
""",
    "memory/projects/fern.md": """\
---
title: Fern
tags: [app, plants]
---
# Fern, the plant-care app

Reminds people to water, feed and repot, and looks at photos of leaves to guess what is wrong.

## Architecture
- FastAPI in front, MariaDB behind, photos in object storage.
- The phone keeps its own copy and syncs when it has a connection, so that it works in a cellar greenhouse.

## Decisions
- 2026-01-12: sign-in by e-mail link, no passwords. A third of all support mail was about lost ones.
- 2026-01-20: leaf diagnosis runs on the phone. Photos of people's homes should not leave it.

## Deploying
```sh
make test
./deploy.sh staging
# look at https://staging.fern.garden for a minute
./deploy.sh production
```
Rolling back: `./deploy.sh production --to previous` takes about twenty seconds.
""",
    "memory/projects/backup.md": """\
# 数据库备份

## 怎么做
- MariaDB 每天凌晨两点半自动导出，加密以后传到另一个城市的机房。
- 每个星期天再做一次完整的拷贝，保存三个月。
- 代码用 GitHub备份，另外在家里的 NAS 上留一份镜像。

## 恢复演练
- 每个季度第一个周一，把最新的导出装到一台空机器上，核对行数。
- 上一次演练是一月五号，用了二十六分钟，没有丢数据。

## 出了事找谁
- 先看监控，再给托马斯打电话。密码在保险箱里，不写在这里。
""",
    "memory/projects/investing.md": """\
# 投资笔记

## 规则
- 单只股票不超过总资产的百分之五。
- 止损线设在买入价下方百分之八，跌破就卖，不补仓。
- 每个月十号定投指数基金，金额固定，不看行情。

## 教训
- 去年夏天没有按规则卖出，想等它涨回来，结果亏了两成。亏损要早认，不要跟市场赌气。
""",
    "memory/people/tomas.md": """\
# Tomás

- Partner in the studio; does design, photographs and everything with paper.
- Reads messages only twice a day, at ten and at four. For something urgent, phone him.
- Is learning Mandarin; likes it when small notes to him contain a word or two.
- Shoe size 43, afraid of heights: no via ferrata for the company trip.
""",
    "memory/people/家人.md": """\
# 家人

- 妈妈住在成都，退休前是小学语文老师，膝盖不好，走路不能太久。
- 爸爸对花粉过敏，春天少去公园；最喜欢喝普洱。
- 表妹小雨在东京学建筑，六月毕业，想来里斯本实习。
""",
    "memory/health/running.md": """\
# Running

- Half marathon in Cascais on 18 October; goal: under two hours.
- Left knee complains on asphalt. The physiotherapist says: shorter steps, soft ground, three runs a week.
- 跑步鞋穿到八百公里就换，现在这双是去年十二月买的。
""",
}
