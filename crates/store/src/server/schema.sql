-- The tables of a store in PostgreSQL. They are those of the embedded database.
--
-- Numbers that are 0 or 1 stand for false and true. Texts from outside are bytes, because a text of
-- PostgreSQL cannot have a NUL; what is JSON or a word of ours is text. Keys compare byte by byte.

CREATE TABLE sessions (
    key        bigint PRIMARY KEY,
    id         text COLLATE "C" NOT NULL UNIQUE,
    summary    text NOT NULL,
    updated_at bigint NOT NULL,
    archived   smallint NOT NULL,
    attention  smallint NOT NULL
);
CREATE INDEX sessions_by_change ON sessions (updated_at, id);
CREATE INDEX sessions_needing_attention ON sessions (key) WHERE attention = 1;

CREATE TABLE records (
    session  bigint NOT NULL,
    seq      bigint NOT NULL,
    at       bigint NOT NULL,
    response bytea,
    body     text NOT NULL,
    cuts     text,
    sum      bigint,
    PRIMARY KEY (session, seq)
);
CREATE INDEX records_about_queue ON records (session, seq)
    WHERE body LIKE '{"type":"message\_%' OR body LIKE '{"type":"queue\_%';

CREATE TABLE blobs (
    hash bytea PRIMARY KEY,
    size bigint NOT NULL,
    data bytea NOT NULL
);
-- They are compressed already.
ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE blob_uses (
    session bigint NOT NULL,
    hash    bytea NOT NULL,
    PRIMARY KEY (session, hash)
);
CREATE INDEX blob_uses_by_hash ON blob_uses (hash);

CREATE TABLE loose_blobs (
    key  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash bytea NOT NULL,
    at   bigint NOT NULL
);
CREATE INDEX loose_blobs_by_hash ON loose_blobs (hash, at);
CREATE INDEX loose_blobs_by_age ON loose_blobs (at);

CREATE TABLE streams (
    key        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session    bigint NOT NULL,
    name       bytea NOT NULL,
    response   bytea,
    head       text NOT NULL,
    first_seq  bigint NOT NULL,
    low        bigint NOT NULL,
    last_seq   bigint,
    closed_seq bigint,
    folded     bigint NOT NULL DEFAULT 0,
    deltas     bytea,
    text       bytea
);
CREATE UNIQUE INDEX streams_by_name ON streams (session, name);
CREATE INDEX streams_by_start ON streams (session, first_seq);
CREATE INDEX streams_open ON streams (session, first_seq) WHERE closed_seq IS NULL;
CREATE INDEX streams_to_fold ON streams (key) WHERE folded = 0 AND closed_seq IS NOT NULL;
CREATE INDEX streams_to_split ON streams (key) WHERE folded = 1 AND length(deltas) > 16384;

CREATE TABLE deltas (
    session  bigint NOT NULL,
    seq      bigint NOT NULL,
    at       bigint NOT NULL,
    stream   bigint NOT NULL,
    "offset" bigint,
    text     bytea NOT NULL,
    PRIMARY KEY (session, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE segments (
    session   bigint NOT NULL,
    stream    bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq  bigint NOT NULL,
    deltas    bytea NOT NULL,
    text      bytea NOT NULL,
    PRIMARY KEY (session, stream, first_seq)
);

CREATE TABLE messages (
    session    bigint NOT NULL,
    number     bigint NOT NULL,
    id         bytea NOT NULL,
    kind       text NOT NULL,
    first_seq  bigint NOT NULL,
    last_seq   bigint NOT NULL,
    open       smallint NOT NULL,
    superseded smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (session, number)
);
CREATE INDEX messages_by_id ON messages (session, id);
CREATE UNIQUE INDEX messages_by_start ON messages (session, first_seq);

CREATE TABLE client_ids (
    session    bigint NOT NULL,
    client_id  bytea NOT NULL,
    message_id bytea NOT NULL,
    PRIMARY KEY (session, client_id)
);

CREATE TABLE queue (
    session    bigint NOT NULL,
    message_id bytea NOT NULL,
    first_seq  bigint NOT NULL,
    PRIMARY KEY (session, message_id)
);

CREATE TABLE deleted (
    session bigint PRIMARY KEY
);

CREATE TABLE items (
    key     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bigint NOT NULL,
    seq     bigint NOT NULL,
    at      bigint NOT NULL,
    kind    text NOT NULL,
    message bytea,
    text    text NOT NULL
);
CREATE INDEX items_by_session ON items (session, seq);

-- Lists of the words of an item; see matches.rs.
CREATE TABLE search (
    item  bigint NOT NULL,
    words tsvector NOT NULL
);
CREATE INDEX search_by_item ON search (item);
CREATE INDEX search_by_word ON search USING gin (words);

CREATE TABLE indexed (
    session bigint PRIMARY KEY,
    seq     bigint NOT NULL
);

CREATE TABLE sign_ins (
    hash bytea PRIMARY KEY,
    at   bigint NOT NULL
);

CREATE TABLE settings (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE grants (
    id     text COLLATE "C" PRIMARY KEY,
    covers bytea NOT NULL,
    at     bigint NOT NULL
);
CREATE UNIQUE INDEX grants_by_scope ON grants (sha256(covers));

CREATE TABLE processes (
    mark    text COLLATE "C" PRIMARY KEY,
    pid     bigint,
    started bigint
);

CREATE TABLE raw_lines (
    session   bigint NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq  bigint NOT NULL,
    at        bigint NOT NULL,
    lines     bytea NOT NULL,
    PRIMARY KEY (session, first)
);
CREATE INDEX raw_lines_by_record ON raw_lines (session, last_seq);
CREATE INDEX raw_lines_by_age ON raw_lines (at);

CREATE TABLE unrecognized (
    agent   bytea NOT NULL,
    version bytea NOT NULL,
    kind    bytea NOT NULL,
    n       bigint NOT NULL,
    PRIMARY KEY (agent, version, kind)
);
