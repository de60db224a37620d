"""The command line. Exit status: 0 done, 1 failed (one sentence on stderr), 2 wrong usage.

With ``--json`` a failure of either kind is also an object on standard output, with the sentence as ``error``.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Run the command line; every failure that we foresee is one sentence."""
    # One search multiplies too little to share: a second thread would only wait beside the first.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if "hook" in sys.argv[1:]:
        from memoriter.integrations.claude_code.hook import main as answer
        from memoriter.integrations.claude_code.hook import parse

        if wanted := parse(sys.argv[1:]):
            answer(wanted)
    from memoriter.cli.app import Abort, WrongUsage, app
    from memoriter.errors import MemoriterError

    try:
        status = app(standalone_mode=False)
    except WrongUsage as error:
        _say_as_json(error.format_message())
        error.show()
        raise SystemExit(error.exit_code) from None
    except Abort:
        _fail("Not done.")
    except MemoriterError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough: no failure. Python must not try to flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        _fail(f"The system refused: {error.strerror or error}{place}.")
    else:
        raise SystemExit(status if isinstance(status, int) else 0)


def _say_as_json(sentence: str) -> None:
    if "--json" in sys.argv[1:]:
        sys.stdout.write(json.dumps({"error": sentence}, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def _fail(sentence: str) -> None:
    _say_as_json(sentence)
    sys.stderr.write(f"memoriter: {sentence}\n")
    raise SystemExit(1)
