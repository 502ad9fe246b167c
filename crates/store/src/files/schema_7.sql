-- Migration 7: long streams are folded in segments, so that a page of one is read without the rest; and a
-- record whose bytes have changed on the disk is noticed.

-- Of all other columns, see damage.rs; NULL for records of earlier versions, which are not checked.
ALTER TABLE records ADD COLUMN sum INTEGER;

-- The deltas of a closed stream, in segments of bounded size. `streams.folded` is 3 once all are here; before
-- that the last ones are in `deltas`.
CREATE TABLE segments (
    session   INTEGER NOT NULL,
    stream    INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,           -- of its first and its last delta
    last_seq  INTEGER NOT NULL,
    deltas    BLOB NOT NULL,              -- see pack.rs
    text      BLOB NOT NULL,              -- TEXT as it is, BLOB zstd
    PRIMARY KEY (session, stream, first_seq)
) WITHOUT ROWID;
-- Streams that an earlier version has folded into one long row.
CREATE INDEX streams_to_split ON streams (key) WHERE folded = 1 AND length(deltas) > 16384;
