-- Migration 1. All but `records`, `deltas`, `streams` and `blobs` can be made again from those four.

CREATE TABLE sessions (
    key        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    summary    TEXT NOT NULL,             -- JSON of transcript::Summary
    updated_at INTEGER NOT NULL,          -- from the summary, as are the next two
    archived   INTEGER NOT NULL,
    attention  INTEGER NOT NULL           -- a starting server must look after it
);
CREATE INDEX sessions_by_change ON sessions (updated_at, id);
CREATE INDEX sessions_needing_attention ON sessions (key) WHERE attention = 1;

-- Every record that is not a delta of a stream.
CREATE TABLE records (
    session  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    response TEXT,
    body     TEXT NOT NULL,               -- the event's JSON, without what was cut out
    cuts     TEXT,                        -- [[byte offset in body, blob], ...], rising
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE TABLE blobs (
    hash BLOB PRIMARY KEY,                -- BLAKE3 of the value
    size INTEGER NOT NULL,
    data BLOB NOT NULL                    -- zstd
);

-- What grows by deltas. The row is written with the first delta, when the stream closes, and when it
-- is folded; never for a delta in between.
CREATE TABLE streams (
    key        INTEGER PRIMARY KEY,
    session    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    response   TEXT,
    head       TEXT NOT NULL,             -- the delta event with an empty delta: what all have in common
    first_seq  INTEGER NOT NULL,
    low        INTEGER NOT NULL,          -- first_seq of the oldest stream that was open when this began
    last_seq   INTEGER,                   -- of the last delta; NULL until closed
    closed_seq INTEGER,
    folded     INTEGER NOT NULL DEFAULT 0, -- 0: in `deltas`, 1: in the next two, 2: stays in `deltas`
    deltas     BLOB,                      -- see pack.rs
    text       BLOB                       -- TEXT as it is, BLOB zstd, NULL: equals the closing text
);
CREATE UNIQUE INDEX streams_by_name ON streams (session, name);
CREATE INDEX streams_by_start ON streams (session, first_seq);
CREATE INDEX streams_open ON streams (session, first_seq) WHERE closed_seq IS NULL;
CREATE INDEX streams_to_fold ON streams (key) WHERE folded = 0 AND closed_seq IS NOT NULL;

-- The deltas of streams that are not folded yet.
CREATE TABLE deltas (
    session INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    stream  INTEGER NOT NULL,
    offset  INTEGER,
    text    TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE TABLE messages (
    session    INTEGER NOT NULL,
    number     INTEGER NOT NULL,          -- 1, 2, 3, ... in order of appearance
    id         TEXT NOT NULL,
    kind       TEXT NOT NULL,             -- said, answer, aside
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    open       INTEGER NOT NULL,
    superseded INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE INDEX messages_by_id ON messages (session, id);
CREATE UNIQUE INDEX messages_by_start ON messages (session, first_seq);

CREATE TABLE client_ids (
    session    INTEGER NOT NULL,
    client_id  TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (session, client_id)
) WITHOUT ROWID;

CREATE TABLE queue (
    session    INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    first_seq  INTEGER NOT NULL,
    PRIMARY KEY (session, message_id)
) WITHOUT ROWID;
