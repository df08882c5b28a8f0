-- Version 8: the tables that were added to schema partner since 0.1.0, whose version is 7, as is that of later
-- checkouts, which have some of them. Chains are created anew, with the tables of today: their indexers begin again.

-- == partner ==

-- Idempotency keys ----------------------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS partner.idempotency_key (
    key_hash    bytea       PRIMARY KEY,
    created_at  timestamptz NOT NULL DEFAULT now(),
    body_hash   bytea       NOT NULL,
    target_id   uuid        NOT NULL,
    issued_to   text        CHECK (issued_to IN ('credential', 'admin_key')),
    answer      bytea       CHECK (answer IS NULL OR issued_to IS NULL),
    invalidated bytea[]     NOT NULL
);
COMMENT ON TABLE partner.idempotency_key IS
    'Requests with an Idempotency-Key, each written in the commit of its change or, if it submits a transaction, '
    'after the node has accepted that. A row is valid for 24 hours, then deleted.';
COMMENT ON COLUMN partner.idempotency_key.key_hash IS
    'SHA-256 of admin key or credential, method, path and idempotency key.';
COMMENT ON COLUMN partner.idempotency_key.body_hash IS
    'SHA-256 of idempotency key and body. The key, which is not stored, salts it.';
COMMENT ON COLUMN partner.idempotency_key.target_id IS
    'What the answer is about: an account, a credential or an admin key; if it is about a transaction, the credential '
    'that submitted it.';
COMMENT ON COLUMN partner.idempotency_key.issued_to IS
    'Of an answer that contains a new key: the kind of target that the key belongs to.';
COMMENT ON COLUMN partner.idempotency_key.answer IS
    'Body of the answer. Null if it contains a key, or was erased with its account.';
COMMENT ON COLUMN partner.idempotency_key.invalidated IS
    'Hashes of the API keys that the request has made the caches forget.';
CREATE INDEX IF NOT EXISTS idempotency_key_age ON partner.idempotency_key (created_at);
CREATE INDEX IF NOT EXISTS idempotency_key_target ON partner.idempotency_key (target_id) WHERE answer IS NOT NULL;

-- Submitted transactions ----------------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS partner.submitted_tx (
    submitted_at      timestamptz NOT NULL DEFAULT now(),
    rolled_back_at    timestamptz,
    network_id        smallint    NOT NULL,
    accepted          boolean     NOT NULL,
    user_account_id   uuid        NOT NULL REFERENCES partner.user_account,
    invalid_hereafter numeric,
    tx_hash           bytea       NOT NULL,
    cbor              bytea       NOT NULL,
    PRIMARY KEY (network_id, tx_hash, user_account_id)
);
COMMENT ON TABLE partner.submitted_tx IS
    'Transactions that the keys of an account have submitted, each written before the node gets it. Old ones are '
    'pruned.';
COMMENT ON COLUMN partner.submitted_tx.submitted_at IS
    'When it was first handed in here or, once the node has accepted it, when the node last did.';
COMMENT ON COLUMN partner.submitted_tx.rolled_back_at IS
    'When the indexer last removed a block with it because of the node; null since the node has accepted it again.';
COMMENT ON COLUMN partner.submitted_tx.accepted IS
    'Whether the node is known to have accepted it; false while it is asked, and after its answer was lost.';
COMMENT ON COLUMN partner.submitted_tx.invalid_hereafter IS
    'The first slot in which it is no longer valid, up to 2^64 - 1; null: never.';
ALTER TABLE partner.submitted_tx ALTER cbor SET STORAGE EXTERNAL;
CREATE INDEX IF NOT EXISTS submitted_tx_account ON partner.submitted_tx (user_account_id, network_id, submitted_at);
CREATE INDEX IF NOT EXISTS submitted_tx_age ON partner.submitted_tx (submitted_at);

-- The same tables, said better.
COMMENT ON COLUMN partner.leader.backend_pid IS
    'Postgres backend pid of the leader when it sent this heartbeat, which is valid only for that Postgres session.';
COMMENT ON COLUMN partner.leader.refused IS
    'Why the indexer stopped by itself, in words that anyone may read; null unless it did.';
COMMENT ON TABLE partner.retired_network IS
    'Networks whose indexer was stopped deliberately; excluded from readiness and metrics. The next indexer deletes '
    'the row.';
COMMENT ON COLUMN partner.verification.node_blocks IS 'Blocks compared with the node; null without --against-node.';
COMMENT ON COLUMN partner.admin_key.credentials IS
    'How many credentials it has created, revoked ones included: the total in its usage list.';
COMMENT ON COLUMN partner.user_account.deleted_at IS
    'After that, only its usage is found. Its texts are erased; the row is kept for the usage of its credentials.';
COMMENT ON COLUMN partner.credential.scopes IS
    'Scopes of the key; empty: every scope except submit, which must be named.';
COMMENT ON TABLE partner.usage_total IS
    'Requests per credential since its creation, one row for each, written with usage: a page of a list is one index '
    'range.';
COMMENT ON TABLE partner.usage_kept IS
    'At most one row: the first day (UTC) whose minutes of usage are kept. Earlier usage is known by hour '
    '(usage_hour) and by day only.';
COMMENT ON FUNCTION partner.usage_of IS
    'Usage rows of a credential in [since, until), by whole minutes: whole days from usage_day, the rest from usage. '
    'Either bound may be infinite.';
COMMENT ON TABLE partner.usage_batch IS
    'One row per spool: its batches below next_offset have been added.';
COMMENT ON TABLE partner.audit_log IS
    'Admin actions. A change and its entry are one commit; the entry of a list is a commit of its own. Entries of '
    'reading are pruned, names of deleted accounts erased.';

-- == chain ==
