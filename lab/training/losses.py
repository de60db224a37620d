"""The training losses, each a mean over rows. Vectors are unit vectors; T is the temperature."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_FAR = -1e4


def target(found: Tensor, wanted: Tensor) -> Tensor:
    """Cosine distance to the teacher's vector."""
    return (1 - (found * wanted).sum(-1)).mean()


def spread(found: Tensor, against: Tensor, wanted: Tensor, temperature: float) -> Tensor:
    """KL between the teacher's and the student's similarities of a row to the other rows of the batch."""
    same = torch.eye(len(found), dtype=torch.bool, device=found.device)
    student = (found @ against.T / temperature).masked_fill(same, _FAR)
    teacher = (wanted @ wanted.T / temperature).masked_fill(same, _FAR)
    return _divergence(student, teacher)


def contrast(
    queries: Tensor,
    texts: Tensor,
    alike: Tensor,
    temperature: float,
    negatives: Tensor | None = None,
) -> Tensor:
    """InfoNCE: row i of `queries` belongs to row i of `texts`. `alike` marks rivals to ignore."""
    scores = (queries @ texts.T / temperature).masked_fill(alike, _FAR)
    if negatives is not None:
        own = (queries[:, None] * negatives).sum(-1) / temperature
        scores = torch.cat([scores, own], 1)
    return functional.cross_entropy(scores, torch.arange(len(queries), device=queries.device))


def ranking(queries: Tensor, texts: Tensor, scores: Tensor, temperature: float) -> Tensor:
    """KL between the cross-encoder's and the student's ranking of a query's list."""
    student = (queries[:, None] * texts).sum(-1) / temperature
    return _divergence(student, scores.float() / 2)


def alike(wanted: Tensor, threshold: float = 0.8) -> Tensor:
    """Mark rows of a batch that the teacher finds nearly equal, without the diagonal."""
    near = wanted @ wanted.T > threshold
    return near.fill_diagonal_(False)


def _divergence(student: Tensor, teacher: Tensor) -> Tensor:
    return functional.kl_div(
        functional.log_softmax(student, -1),
        functional.log_softmax(teacher, -1),
        log_target=True,
        reduction="batchmean",
    )
