-- Version 13: events of what is in no block.

-- == partner ==

CREATE TABLE partner.event_notice (
    notice_no  bigint      GENERATED ALWAYS AS IDENTITY,
    noticed_at timestamptz NOT NULL DEFAULT now(),
    network_id smallint    NOT NULL,
    owner      uuid,
    kind       text        NOT NULL,
    body       text        NOT NULL CHECK (length(body) <= 65536),
    PRIMARY KEY (network_id, notice_no)
);
COMMENT ON TABLE partner.event_notice IS
    'What is in no block, and is still to be told. It is written in the commit that causes it; the follower of the '
    'network appends it to logs, and deletes it in the same commit.';
COMMENT ON COLUMN partner.event_notice.owner IS
    'The credential or the account that is told of it, as its kind says; null: all that ask for its kind.';
COMMENT ON COLUMN partner.event_notice.body IS 'The object of the event, as JSON.';

CREATE TABLE partner.event_notice_once (
    period        timestamptz NOT NULL,
    noticed_at    timestamptz NOT NULL DEFAULT now(),
    credential_id uuid        NOT NULL REFERENCES partner.credential,
    kind          text        NOT NULL,
    PRIMARY KEY (credential_id, kind, period)
);
COMMENT ON TABLE partner.event_notice_once IS
    'The notices of which a credential gets one in each period, written in their commit. Old ones are pruned.';
COMMENT ON COLUMN partner.event_notice_once.period IS
    'Of key.expiring: when the key expires; of quota.80 and quota.100: when the period of the quota began.';

COMMENT ON COLUMN partner.event.key IS 'The subject that it matched, after a ! if it tells of a notice; of a reset r-.';
COMMENT ON COLUMN partner.event.undone IS
    'Whether there is nothing to undo: it is undone already, undoes another, or tells of what is in no block.';

-- == chain ==
