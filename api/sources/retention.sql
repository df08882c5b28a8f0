-- name: lock
-- No other process prunes until the end of this commit.
SELECT pg_try_advisory_xact_lock(5495816503463495504) AS ours

-- name: keep
-- Store the first day whose minutes of usage are kept, and the time from which on hours are, before the first row is
-- deleted. Neither decreases.
INSERT INTO partner.usage_kept (since, hours_since)
VALUES (date_trunc('day', now() - make_interval(days => $1), 'UTC'),
        now() - make_interval(days => $2))
ON CONFLICT (one) DO UPDATE
SET since = greatest(usage_kept.since, excluded.since),
    hours_since = greatest(usage_kept.hours_since, excluded.hours_since)

-- name: drop_former_keys
-- Former keys that ended 30 days ago or earlier. There are few: one for each rotation.
DELETE FROM partner.former_key WHERE ends_at < now() - interval '30 days'

-- name: drop_notices
-- Notices that no follower has taken for $1 days. There are few: followers take each at once.
DELETE FROM partner.event_notice WHERE noticed_at < now() - make_interval(days => $1)

-- name: drop_notices_once
-- What was told once in a period that ended long ago: a period has at most 31 days. There are few.
DELETE FROM partner.event_notice_once WHERE noticed_at < now() - interval '62 days'

-- name: drop_submitted
-- Delete transactions that were submitted more than $1 days ago, at most $2. Skips those that are being changed, so
-- that an indexer that rolls back never waits for a process that waits for it.
WITH old AS (
    SELECT network_id, tx_hash, user_account_id
    FROM partner.submitted_tx
    WHERE submitted_at < now() - make_interval(days => $1)
    ORDER BY submitted_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
DELETE FROM partner.submitted_tx AS each USING old
WHERE each.network_id = old.network_id AND each.tx_hash = old.tx_hash AND each.user_account_id = old.user_account_id

-- name: drop_idempotency_keys
-- Delete expired idempotency keys, $1 at most.
WITH old AS (
    SELECT key_hash
    FROM partner.idempotency_key
    WHERE created_at <= now() - interval '24 hours'
    ORDER BY created_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED
)
DELETE FROM partner.idempotency_key USING old WHERE idempotency_key.key_hash = old.key_hash

-- name: next_credentials
-- The next credentials in order of id.
SELECT id FROM partner.credential WHERE id > $1 ORDER BY id LIMIT $2

-- name: drop_minutes
-- Delete expired minutes of some credentials, $2 at most.
WITH old AS (
    SELECT credential_id, minute
    FROM partner.usage
    WHERE credential_id = ANY($1::uuid[]) AND minute < (SELECT since FROM partner.usage_kept)
    LIMIT $2
)
DELETE FROM partner.usage USING old WHERE usage.credential_id = old.credential_id AND usage.minute = old.minute

-- name: drop_hours
-- Delete expired hours of some credentials, $2 at most.
WITH old AS (
    SELECT credential_id, hour, endpoint_no, status_class
    FROM partner.usage_hour
    WHERE credential_id = ANY($1::uuid[]) AND hour < (SELECT hours_since FROM partner.usage_kept)
    LIMIT $2
)
DELETE FROM partner.usage_hour USING old
WHERE usage_hour.credential_id = old.credential_id AND usage_hour.hour = old.hour
  AND usage_hour.endpoint_no = old.endpoint_no AND usage_hour.status_class = old.status_class

-- name: drop_readings
-- Delete audit entries of read access older than $1 days, $2 at most.
WITH old AS (
    SELECT id
    FROM partner.audit_log
    WHERE right(action, 7) IN ('.viewed', '.listed') AND created_at < now() - make_interval(days => $1)
    ORDER BY created_at
    LIMIT $2
)
DELETE FROM partner.audit_log USING old WHERE audit_log.id = old.id

-- name: drop_events
-- Delete events that were told more than $1 days ago, $2 at most.
WITH old AS (
    SELECT subscription_no, number FROM partner.event WHERE told_at < now() - make_interval(days => $1) LIMIT $2
)
DELETE FROM partner.event USING old
WHERE event.subscription_no = old.subscription_no AND event.number = old.number

-- name: drop_event_objects
-- Delete the objects of events that are twice as old: an event may be told long after its block, and undone as late.
WITH old AS (
    SELECT object_no FROM partner.event_object WHERE made_at < now() - make_interval(days => 2 * $1 + 1) LIMIT $2
)
DELETE FROM partner.event_object USING old WHERE event_object.object_no = old.object_no

-- name: end_subscriptions
-- End the subscriptions of revoked credentials, and those that have not begun within $1 days, as a log may not begin
-- much further back. Reads all subscriptions. Skips those that are being changed, so that the follower, which changes
-- many as well, never waits for a process that waits for it.
WITH old AS (
    SELECT subscription_no FROM partner.subscription
    WHERE state <> 'ended'
      AND (state = 'new' AND created_at < now() - make_interval(days => $1)
           OR EXISTS (SELECT FROM partner.credential WHERE id = subscription.credential_id AND revoked_at IS NOT NULL))
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE partner.subscription SET state = 'ended' FROM old WHERE subscription.subscription_no = old.subscription_no

-- name: drop_subjects
-- Delete subjects of ended subscriptions, $1 at most.
WITH old AS (
    SELECT subject.subscription_no, subject.key
    FROM partner.subscription JOIN partner.subject USING (subscription_no)
    WHERE subscription.state = 'ended' LIMIT $1
)
DELETE FROM partner.subject USING old WHERE subject.subscription_no = old.subscription_no AND subject.key = old.key

-- name: drop_ended_events
-- Delete events of ended subscriptions, $1 at most. Skips those that the follower is undoing.
WITH old AS (
    SELECT event.subscription_no, event.number
    FROM partner.subscription JOIN partner.event USING (subscription_no)
    WHERE subscription.state = 'ended' LIMIT $1 FOR UPDATE OF event SKIP LOCKED
)
DELETE FROM partner.event USING old
WHERE event.subscription_no = old.subscription_no AND event.number = old.number

-- name: drop_subscriptions
-- Delete ended subscriptions whose rows are gone, $1 at most. Skips those that are being changed.
WITH old AS (
    SELECT subscription_no FROM partner.subscription
    WHERE state = 'ended'
      AND NOT EXISTS (SELECT FROM partner.subject WHERE subject.subscription_no = subscription.subscription_no)
    LIMIT $1
    FOR UPDATE SKIP LOCKED
)
DELETE FROM partner.subscription USING old WHERE subscription.subscription_no = old.subscription_no
