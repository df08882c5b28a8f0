-- name: expiring
-- Credentials whose key expires within $2 days, that ask to be told of it, and were not told yet, $4 at most; notes
-- that they are, once, whoever else looks. $3 begins the key of their subject. Cost: the keys that expire within those
-- days.
WITH due AS (
    SELECT id, network_id, api_key_prefix, expires_at FROM partner.credential
    WHERE revoked_at IS NULL AND expires_at > now() AND expires_at <= now() + make_interval(days => $2)
      AND EXISTS (
          SELECT FROM partner.subject JOIN partner.subscription USING (subscription_no)
          WHERE subject.network_id = credential.network_id AND subject.key = $3::bytea || uuid_send(credential.id)
            AND subscription.state IN ('catching_up', 'live'))
      AND NOT EXISTS (
          SELECT FROM partner.event_notice_once once
          WHERE once.credential_id = credential.id AND once.kind = $1 AND once.period = credential.expires_at)
    ORDER BY expires_at LIMIT $4
), noted AS (
    INSERT INTO partner.event_notice_once (credential_id, kind, period) SELECT id, $1, expires_at FROM due
    ON CONFLICT DO NOTHING
    RETURNING credential_id
)
SELECT credential_id, api_key_prefix, expires_at, network_id FROM noted JOIN due ON due.id = noted.credential_id
