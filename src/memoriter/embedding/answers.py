"""What a provider may answer: as many vectors as texts, in their order, of this model, of sane numbers.

Our own models are cleaned where a number is not finite; a provider whose numbers are broken is not believed at
all, because a repaired vector would be stored for good and found for no reason. Width and count are `vectors`'
duty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from memoriter.errors import EmbeddingError

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

SHORTEST, LONGEST = 1e-4, 1e4  #: of a vector, by its norm; models give about 1


def by_index(numbered: Iterable[tuple[object, Any]], count: int) -> list[Any]:
    """The vectors in the order of their numbers, which must be 0 to count - 1, each once."""
    pairs = list(numbered)
    numbers = [number for number, _ in pairs]
    if len(pairs) != count:
        raise EmbeddingError(f"the provider returned {len(pairs)} vectors for {count} texts")
    if any(not isinstance(number, int) for number in numbers) or set(numbers) != set(range(count)):
        raise EmbeddingError(f"the provider numbered {count} vectors {numbers[:8]}, not from 0 on, each once")
    return [row for _, row in sorted(pairs, key=lambda pair: int(str(pair[0])))]


def same_model(asked: str, answered: object) -> None:
    """Raise when the provider says that another model made the vectors."""
    if not isinstance(answered, str) or not answered:
        return
    one, other = _plain(asked), _plain(answered)
    if one not in other and other not in one:
        raise EmbeddingError(
            f"the provider answered with vectors of the model {answered[:80]!r}, not of {asked!r}; "
            "if that is the model you mean, set embedding.model to it"
        )


def sound(rows: object, count: int, dimensions: int) -> Matrix:
    """The rows as an array, if every number is finite and every vector has a length; else an error."""
    import numpy as np

    from memoriter.embedding.vectors import validate

    if not isinstance(rows, Sequence) and not hasattr(rows, "__array__"):
        raise EmbeddingError("the provider's answer holds no vectors")
    if isinstance(rows, Sequence) and len(rows) != count:
        raise EmbeddingError(f"the provider returned {len(rows)} vectors for {count} texts")
    # Float64: a number that only overflows in float32 must be seen as it was sent.
    try:
        array = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise EmbeddingError("the provider returned vectors of different lengths, or no numbers") from error
    validate(array, count, dimensions)
    if not np.isfinite(array).all():
        raise EmbeddingError("the provider returned numbers that are not finite")
    norms = np.linalg.norm(array, axis=-1)
    if ((norms < SHORTEST) | (norms > LONGEST)).any():
        raise EmbeddingError(
            f"the provider returned a vector of length {norms[np.argmax(np.abs(np.log10(norms + 1e-300)))]:g}"
        )
    return array.astype(np.float32)


def _plain(model: str) -> str:
    return model.lower().replace("\\", "/").rpartition("/")[2].removesuffix(":latest")
