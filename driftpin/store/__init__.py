"""The store: what was wanted, recorded, blessed and told, in SQLite or PostgreSQL.

Knows nothing of engines, verdicts or channels; it keeps what they hand it.
"""

from driftpin.store.store import Store

__all__ = ["Store"]
