-- Migration 5: agents that are programs.

-- Programs that were started and whose end nobody has seen: a starting server ends what is left.
CREATE TABLE processes (
    mark    TEXT PRIMARY KEY,             -- in the environment of all its processes
    pid     INTEGER,                      -- NULL: about to be started
    started INTEGER                       -- in the system's own count
) WITHOUT ROWID;

-- What programs have written, line by line, in batches.
CREATE TABLE raw_lines (
    session   INTEGER NOT NULL,
    first     INTEGER NOT NULL,           -- lines of a session are numbered 1, 2, 3, ...
    last      INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,           -- all records that were made of these lines lie
    last_seq  INTEGER NOT NULL,           --   from here to here
    at        INTEGER NOT NULL,           -- of the last line
    lines     BLOB NOT NULL,              -- zstd, see raw.rs
    PRIMARY KEY (session, first)
) WITHOUT ROWID;
CREATE INDEX raw_lines_by_record ON raw_lines (session, last_seq);
CREATE INDEX raw_lines_by_age ON raw_lines (at);

-- What programs have said and we could not read.
CREATE TABLE unrecognized (
    agent   TEXT NOT NULL,
    version TEXT NOT NULL,
    kind    TEXT NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (agent, version, kind)
) WITHOUT ROWID;
