"""Zstandard, unpacked within bounds: by Python itself from 3.14 on, before that by a package that is an extra."""

from __future__ import annotations

import sys

from recollect.errors import SourceError

MISSING = "it holds compressed messages: pip install 'recollect[openclaw]', then import again"


def unpacked(data: bytes, most: int) -> bytes:
    """What was packed; raises `SourceError` where it cannot be unpacked or is longer than ``most``."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd

            try:
                plain = zstd.ZstdDecompressor().decompress(data, most + 1)
            except zstd.ZstdError as error:
                raise SourceError(f"a message in it is damaged: {error}") from error
        else:
            import zstandard

            try:
                with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                    plain = reader.read(most + 1)
            except zstandard.ZstdError as error:
                raise SourceError(f"a message in it is damaged: {error}") from error
    except ImportError as error:
        raise SourceError(MISSING) from error
    if len(plain) > most:
        raise SourceError("a message in it is too long")
    return plain
