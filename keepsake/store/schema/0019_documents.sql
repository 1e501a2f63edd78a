-- The documents of a bank, the newest first: few among the sources of a repository.
CREATE INDEX sources_documents ON sources (org, bank, created_at, id) WHERE kind = 'document' AND replaced_by IS NULL;
