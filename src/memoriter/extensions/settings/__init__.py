"""Commands that change the settings file (`config`, `collection`), and the names of settings in other programs."""

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.settings.commands"
_CONVERSIONS = "memoriter.extensions.settings.conversions"

extension = Extension(
    name="settings",
    commands={
        "collection": Offer(f"{_COMMANDS}:collection_app", group="Notes"),
        "config": Offer(f"{_COMMANDS}:config_app", group="Maintenance"),
    },
    operations={
        "settings.list": Offer("memoriter.extensions.settings.operations:settings"),
        "settings.set": Offer("memoriter.extensions.settings.operations:set_"),
    },
    other_names={
        "sync.on_search": "search.sync_before",
        "sync.on_session_start": "watch.on_session_start",
        "sync.watch": "watch.enabled",
        "sync.interval_minutes": "watch.interval_minutes",
        "sync.interval_ms": f"{_CONVERSIONS}:interval",
        "sync.watch_debounce_ms": f"{_CONVERSIONS}:debounce",
        "sync.sessions.delta_bytes": "sessions.delta_bytes",
        "sync.sessions.delta_messages": "sessions.delta_messages",
        "watch_debounce_ms": f"{_CONVERSIONS}:debounce",
        "watch.debounce_ms": f"{_CONVERSIONS}:debounce",
        "hybrid.enabled": f"{_CONVERSIONS}:hybrid",
        "hybrid.vector_weight": "search.vector_weight",
        "hybrid.text_weight": "search.text_weight",
        "batch.timeout_minutes": "embedding.batch_timeout_minutes",
        "batch.concurrency": "embedding.concurrency",
        "storage.vector_db_path": "entries.index_folder",
        "storage.metadata_db_path": "entries.database",
        "storage.embedding_model": f"{_CONVERSIONS}:embedding_model",
        "storage.embedding_dimension": "embedding.dimensions",
        "max_search_results": "search.max_results",
        "min_score": "search.min_score",
    },
)
