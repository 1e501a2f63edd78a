-- People, the roles they have in an org or a bank, and the keys that are theirs.

CREATE TABLE users (
    org BIGINT NOT NULL,
    id BIGINT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT,
    PRIMARY KEY (org, id),
    UNIQUE (org, name)
);

-- Roles add up. Bank 0 is the whole org.
CREATE TABLE members (
    org BIGINT NOT NULL,
    bank BIGINT NOT NULL,
    person BIGINT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org, person, bank, role)
);
CREATE INDEX members_by_bank ON members (org, bank);

-- Whose key it is: it may never do more than that person may now. NULL for a key that stands for itself.
ALTER TABLE api_keys ADD COLUMN person BIGINT;
