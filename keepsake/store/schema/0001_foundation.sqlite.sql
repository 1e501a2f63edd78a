CREATE TABLE vectors (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    model BIGINT NOT NULL,
    vec BLOB NOT NULL,
    text_hash TEXT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (org, bank, memory)
);
CREATE INDEX vectors_by_seq ON vectors (org, bank, seq);
CREATE INDEX vectors_by_model ON vectors (org, bank, model, memory);

CREATE TABLE search_docs (
    id INTEGER PRIMARY KEY,
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    concepts TEXT NOT NULL,
    facts TEXT NOT NULL,
    files TEXT NOT NULL,
    context TEXT NOT NULL,
    length BIGINT NOT NULL
);
CREATE INDEX search_docs_by_bank ON search_docs (org, bank);

-- The words are stems already, each behind its bank's prefix, so a posting list never mixes banks.
CREATE VIRTUAL TABLE search USING fts5(
    title, body, concepts, facts, files, context,
    content='search_docs', content_rowid='id', columnsize=0, tokenize='unicode61 remove_diacritics 0'
);
