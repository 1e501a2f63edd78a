-- What a bank learns from a repository: where it is, how far it was read, and its files at that revision.

CREATE TABLE repos (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    -- A folder, or an https address, as it was given.
    remote TEXT NOT NULL,
    -- `owner/name` where it is on GitHub; else empty.
    full_name TEXT NOT NULL,
    -- The branch and the commit that were read last; empty before the first sync.
    branch TEXT NOT NULL,
    head TEXT NOT NULL,
    -- JSON: the refs that were read, and how far each list of GitHub's was read.
    cursors TEXT NOT NULL,
    -- new, running, completed, partial or failed, and what the last sync left out or failed of.
    state TEXT NOT NULL,
    note TEXT NOT NULL,
    -- How many syncs came to their end, and when the last one did.
    completed BIGINT NOT NULL,
    last_synced_at BIGINT,
    -- How the project's profile stands: pending, running, completed or failed, 0 to 100, and of how many memories it was made.
    synthesis TEXT NOT NULL,
    synthesis_progress BIGINT NOT NULL,
    synthesis_of BIGINT NOT NULL,
    -- Files in `.keystone` or `.keepsake`.
    folder_files BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org, bank)
);
CREATE INDEX repos_by_name ON repos (org, full_name);

CREATE TABLE repo_files (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    path TEXT NOT NULL,
    -- git's name for its content, and its size; a link's target is never followed.
    blob TEXT NOT NULL,
    size BIGINT NOT NULL,
    -- file, link or module.
    kind TEXT NOT NULL,
    PRIMARY KEY (org, bank, path)
) PARTITIONED;

-- Where a question to the model came from: mcp, web or cli; empty for the background.
ALTER TABLE usage ADD COLUMN source TEXT NOT NULL DEFAULT '';
