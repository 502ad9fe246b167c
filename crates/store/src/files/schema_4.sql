-- Migration 4: what people have allowed for good, until somebody takes it back.

CREATE TABLE grants (
    id     TEXT PRIMARY KEY,
    covers TEXT NOT NULL UNIQUE,
    at     INTEGER NOT NULL
) WITHOUT ROWID;
