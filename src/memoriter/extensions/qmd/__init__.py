"""qmd: an engine that answers through the external program `qmd`, from the same files.

`opening` pairs it with the builtin engine (`fallback`), `engine` answers, and `command` runs the program, one process
for each call.
"""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="qmd",
    engines={"qmd": Offer("memoriter.extensions.qmd.opening:open_engine")},
    settings={"memory.qmd": "memoriter.extensions.qmd.settings:QmdBackendSettings"},
    # OpenClaw has these settings in its section of qmd. They apply to every engine.
    other_names={
        "memory.qmd.collections": "memory.qmd.paths",
        "memory.qmd.citations": "memory.citations",
        "memory.qmd.limits.max_injected_chars": "memory.max_injected_chars",
        "memory.qmd.limits.max_results": "search.max_results",
        "memory.qmd.limits.max_snippet_chars": "search.snippet_chars",
        "memory.qmd.scope": "memory.scope",
    },
)
