-- Passwords, sessions of the console, and what clients may do in someone's name. Codes, tokens and session ids are hashed.

CREATE TABLE passwords (
    org BIGINT NOT NULL,
    person BIGINT NOT NULL,
    hash TEXT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (org, person)
);

CREATE TABLE web_sessions (
    org BIGINT NOT NULL,
    sha256 TEXT NOT NULL UNIQUE,
    person BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    recent_login_at BIGINT NOT NULL,
    PRIMARY KEY (org, sha256)
);
CREATE INDEX web_sessions_by_person ON web_sessions (org, person);

-- What strangers may try only so often: names and addresses as keyed digests.
CREATE TABLE tries (
    org BIGINT NOT NULL,
    what TEXT NOT NULL,
    digest TEXT NOT NULL,
    since BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (org, what, digest)
);

CREATE TABLE oauth_clients (
    org BIGINT NOT NULL,
    id BIGINT NOT NULL,
    -- What the client calls itself by: a random text, or the address of its metadata document.
    client_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    redirects TEXT NOT NULL,
    method TEXT NOT NULL,
    secret TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- When the document was last read, or the client registered.
    read_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    PRIMARY KEY (org, id),
    UNIQUE (org, client_id)
);

-- One consent: a person lets a client do this much for a while. Its tokens are one family.
CREATE TABLE oauth_grants (
    org BIGINT NOT NULL,
    id BIGINT NOT NULL,
    person BIGINT NOT NULL,
    client BIGINT NOT NULL,
    scopes TEXT NOT NULL,
    -- Ids of banks; JSON null means every bank of the person.
    banks TEXT NOT NULL,
    resource TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    PRIMARY KEY (org, id)
);
CREATE INDEX oauth_grants_by_client ON oauth_grants (org, client);

CREATE TABLE oauth_tokens (
    org BIGINT NOT NULL,
    sha256 TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    grant_id BIGINT NOT NULL,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    -- Of a code: where it was sent, and what its verifier must hash to.
    redirect TEXT NOT NULL,
    challenge TEXT NOT NULL,
    PRIMARY KEY (org, sha256)
);
CREATE INDEX oauth_tokens_by_grant ON oauth_tokens (org, grant_id);
CREATE INDEX oauth_tokens_by_end ON oauth_tokens (org, expires_at);
