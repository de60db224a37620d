"""Try an adapter on one conversation: `python -m lab.harness NAME --source DIR`.

The question is answered if the right message is among what the adapter returns. No language model is used: where a
harness asks one, a server on loopback returns the line of the prompt with the answer, and judges whether it is there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from lab.harness import hypotheses
from memoriter.config import load
from memoriter.extensions.serving.server import GatewayServer
from memoriter.server.http.gateway import SettingsLoader

HERE = Path(__file__).parent
MESSAGES = [
    {"role": "user", "content": "Caroline: I went to a support group yesterday.", "chat_time": "2023-05-07"},
    {"role": "assistant", "content": "Melanie: That is great! I painted a lake sunrise last year."},
    {
        "role": "user",
        "content": "Caroline: I want to study counselling next term.",
        "chat_time": "2023-05-08",
    },
    {"role": "assistant", "content": "Melanie: My kids and I went camping by the river in June."},
]
QUESTION, WANTED = "What did Melanie paint?", "lake sunrise"
#: The answer to the first question about a fact of BEAM's first chat of 100K.
BEAM_WANTED = "first sprint ends on March 29"


@contextmanager
def gateway(folder: Path) -> Iterator[tuple[str, str]]:
    """Run a gateway, and yield its address and a token."""
    workspace = folder / "notes"
    workspace.mkdir()
    arguments = {"workspace": workspace, "home": folder / "home", "gateway.port": 0}
    server, ready = (
        GatewayServer(SettingsLoader(load(arguments=arguments), None, arguments)),
        threading.Event(),
    )
    thread = threading.Thread(target=server.run, args=(ready.set,))
    thread.start()
    try:
        ready.wait(60)
        yield server.address, server.gateway.tokens.create("admin")[1]
    finally:
        server.stop()
        thread.join()


def omnimemeval(source: Path, folder: Path) -> str:
    """Use the harness's own client of mem0, unmodified."""
    with gateway(folder) as (address, token):
        os.environ |= {"MEM0_API_KEY": token, "MEM0_BASE_URL": f"{address}/mem0"}
        sys.path.insert(0, str(source / "scripts"))
        from client_factory.registry import create_client  # type: ignore[import-not-found]

        client = create_client("mem0")
        client.add(MESSAGES, "conv-26")
        found = str(client.search(QUESTION, "conv-26", 5))
        client.delete_all("conv-26")
        assert client.search(QUESTION, "conv-26", 5) == "", "delete_all left something"
    return found


def amb(source: Path, folder: Path) -> str:
    """Use our provider with the harness's classes."""
    sys.path.insert(0, str(source / "src"))
    import types

    package = types.ModuleType("memory_bench.memory")  # its own imports every other product
    package.__path__ = [str(source / "src" / "memory_bench" / "memory")]
    sys.modules["memory_bench.memory"] = package
    from memory_bench.models import Document  # type: ignore[import-not-found]

    from lab.harness.agent_memory_benchmark import MemoriterProvider

    provider = MemoriterProvider()
    provider.prepare(folder)
    text = "\n".join(message["content"] for message in MESSAGES)
    provider.ingest([Document("session-1", text, user_id="conv-26", timestamp="2023-05-08T13:56:00")])
    documents, _ = provider.retrieve(QUESTION, 5, "conv-26")
    others, _ = provider.retrieve(QUESTION, 5, "conv-30")
    provider.cleanup()
    assert others == [], "another user sees this conversation"
    return "\n".join(document.content for document in documents)


def memorybench(source: Path, folder: Path) -> str:
    """Run our provider in the harness's tree, with Node, which strips the types."""
    place = folder / "src" / "providers" / "memoriter"
    place.mkdir(parents=True)
    (folder / "src" / "types").symlink_to(source / "src" / "types")
    (place / "index.ts").write_text((HERE / "memorybench.ts").read_text())
    (folder / "try.mts").write_text(
        'import { MemoriterProvider } from "./src/providers/memoriter/index.ts"\n'
        "const provider = new MemoriterProvider()\n"
        'await provider.initialize({ apiKey: "" })\n'
        f"const messages = {MESSAGES!r}\n"
        'await provider.ingest([{ sessionId: "s1", messages }], { containerTag: "conv-26" })\n'
        f'const found = await provider.search("{QUESTION}", {{ containerTag: "conv-26", limit: 5 }})\n'
        "console.log(JSON.stringify(found))\n"
        'await provider.clear("conv-26")\n'
    )
    with gateway(folder) as (address, token):
        environment = {**os.environ, "MEMORITER_URL": address, "MEMORITER_TOKEN": token}
        node = os.environ.get("NODE", "node")
        command = [node, "--experimental-strip-types", str(folder / "try.mts")]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


class Model(BaseHTTPRequestHandler):
    """A model that finds the answer if the prompt has it, and a judge that says yes if the answer is there."""

    def do_POST(self) -> None:
        """Answer a prompt."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        shown = body["messages"][-1]["content"]
        line = next(
            (one for one in shown.splitlines() if WANTED in one or BEAM_WANTED in one), "I don't know."
        )
        judged = "Model Response:" in shown
        said = ("yes" if WANTED in shown.rpartition("Model Response:")[2] else "no") if judged else line
        message = {"role": "assistant", "content": said}
        usage = {"prompt_tokens": len(shown) // 4, "completion_tokens": 1, "total_tokens": 1}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def model() -> Iterator[str]:
    """Run the model, and yield its address."""
    server = HTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def longmemeval(source: Path, folder: Path) -> str:
    """Answer one question, and let the benchmark's own `evaluate_qa.py` judge it."""
    said = [{key: one[key] for key in ("role", "content")} for one in MESSAGES]
    case = {
        "question_id": "q1",
        "question_type": "single-session-assistant",
        "question": QUESTION,
        "answer": WANTED,
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_dates": ["2023/05/08 (Mon) 13:56"],
        "haystack_sessions": [said],
    }
    data, out = folder / "data.json", folder / "hypotheses.jsonl"
    data.write_text(json.dumps([case]))
    script = source / "src" / "evaluation" / "evaluate_qa.py"
    with model() as url:
        hypotheses.main(["longmemeval", "--data", str(data), "--url", url, "--out", str(out)])
        environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        command = [sys.executable, str(script), "gpt-4o", str(out), str(data)]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "Accuracy: 1.0" in ran.stdout, ran.stdout + ran.stderr
    return out.read_text()


def beam(source: Path, folder: Path) -> str:
    """Answer the questions of the first chat of 100K."""
    shutil.copytree(source / "chats" / "100K" / "1", folder / "chats" / "1")
    with model() as url:
        places = ["--data", str(folder / "chats"), "--out", str(folder / "results")]
        hypotheses.main(["beam", *places, "--url", url])
    found = json.loads((folder / "results" / "1" / "memoriter.json").read_text())
    asked = json.loads((source / "chats/100K/1/probing_questions/probing_questions.json").read_text())
    assert {kind: len(some) for kind, some in found.items()} == {
        kind: len(some) for kind, some in asked.items()
    }
    return str(found["information_extraction"][0]["llm_response"])


HARNESSES = {
    "omnimemeval": omnimemeval,
    "amb": amb,
    "memorybench": memorybench,
    "longmemeval": longmemeval,
    "beam": beam,
}


def main() -> int:
    """Try one adapter."""
    parser = argparse.ArgumentParser(prog="python -m lab.harness", description=__doc__)
    parser.add_argument("harness", choices=HARNESSES)
    parser.add_argument("--source", type=Path, required=True, help="a checkout of the harness")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoriter-harness-") as folder:
        found = HARNESSES[options.harness](options.source.resolve(), Path(folder))
    print(found)
    is_there = (BEAM_WANTED if options.harness == "beam" else WANTED) in found
    print("found" if is_there else "not found")
    return 0 if is_there else 1


if __name__ == "__main__":
    sys.exit(main())
