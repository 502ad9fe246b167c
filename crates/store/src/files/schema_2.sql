-- Migration 2: sign-ins, search, deletion. `items`, `search` and `indexed` are made from the records.

CREATE TABLE sign_ins (
    hash BLOB PRIMARY KEY,
    at   INTEGER NOT NULL
) WITHOUT ROWID;

-- Which sessions name a blob: by a value cut out of a record, or by an attachment.
CREATE TABLE blob_uses (
    session INTEGER NOT NULL,
    hash    BLOB NOT NULL,
    PRIMARY KEY (session, hash)
) WITHOUT ROWID;
CREATE INDEX blob_uses_by_hash ON blob_uses (hash);
INSERT OR IGNORE INTO blob_uses (session, hash)
    SELECT records.session, unhex(json_extract(cut.value, '$[1]'))
    FROM records, json_each(records.cuts) AS cut WHERE records.cuts IS NOT NULL;

-- Blobs that were put and wait to be named, one row for each time.
CREATE TABLE loose_blobs (
    key  INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    at   INTEGER NOT NULL
);
CREATE INDEX loose_blobs_by_hash ON loose_blobs (hash, at);
CREATE INDEX loose_blobs_by_age ON loose_blobs (at);

-- Sessions that are gone, while rows of theirs are left. No key in here is given to a new session.
CREATE TABLE deleted (
    session INTEGER PRIMARY KEY
);

-- What can be found. The text is kept, because snippets, and forgetting its words, need it.
CREATE TABLE items (
    key     INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,                -- see item.rs
    message TEXT,
    text    TEXT NOT NULL                 -- last: all else is read without it
);
CREATE INDEX items_by_session ON items (session, seq);
CREATE VIRTUAL TABLE search USING fts5 (
    text, content = 'items', content_rowid = 'key', tokenize = "unicode61 remove_diacritics 2"
);
-- Words that are deleted go from the index at once, not when its parts are merged some day.
INSERT INTO search (search, rank) VALUES ('secure-delete', 1);

-- Up to where a session's records are in `items`.
CREATE TABLE indexed (
    session INTEGER PRIMARY KEY,
    seq     INTEGER NOT NULL
);
