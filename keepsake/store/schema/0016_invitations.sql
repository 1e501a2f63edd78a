-- One-time links by which people get their account, or a new password for it. The link itself is only with them.

CREATE TABLE invitations (
    org BIGINT NOT NULL,
    id BIGINT NOT NULL,
    sha256 TEXT NOT NULL UNIQUE,
    -- Empty for the link that makes the first account: whoever opens it chooses a name.
    name TEXT NOT NULL,
    -- Who gets a new password; NULL makes a new person.
    person BIGINT,
    role TEXT NOT NULL,
    bank BIGINT NOT NULL,
    -- Who made it: a link is good only while they may make one.
    made_by TEXT NOT NULL,
    maker BIGINT,
    maker_key BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    revoked_at BIGINT,
    PRIMARY KEY (org, id)
);

-- By what people know the browsers in which they are signed in.
ALTER TABLE web_sessions ADD COLUMN browser TEXT NOT NULL DEFAULT '';
