-- What the sender of webhooks reads and writes.

-- name: try_to_lead
SELECT pg_try_advisory_lock($1) AS ours

-- name: steps
-- Grows whenever live subscriptions are told of a block, or of an undoing.
SELECT coalesce(sum(step), 0)::bigint AS steps FROM partner.event_mark

-- name: due
-- At most $2 webhooks with an event to send, and their partners: longest due first, those that fail after the others.
-- Partners come in turn, so that one with more than $2 does not hide the others. Not those of the subscriptions $1.
-- Reads all active webhooks.
SELECT subscription_no, admin_key_id
FROM partner.webhook_waiting
WHERE try_at <= now() AND subscription_no <> ALL ($1::bigint[])
ORDER BY failures > 0, row_number() OVER (PARTITION BY admin_key_id ORDER BY failures > 0, try_at), subscription_no
LIMIT $2

-- name: webhooks
-- The webhooks of the subscriptions $1 that are active and still have an event to send. A look-up each.
SELECT webhook.subscription_no, webhook.revision, subscription.id AS subscription_id,
       subscription.credential_id, subscription.network_id, webhook.url, webhook.secret,
       CASE WHEN webhook.former_until > now() THEN webhook.former_secret END AS former_secret,
       webhook.delivered_number, webhook.failures
FROM unnest($1::bigint[]) AS wanted (subscription_no)
JOIN partner.webhook USING (subscription_no)
JOIN partner.subscription USING (subscription_no)
WHERE webhook.state = 'active' AND subscription.state <> 'ended'
  AND subscription.last_number > webhook.delivered_number

-- name: events
-- The events of each subscription $1 after the number $2, in order: at most $3, and of several together at most $4
-- bytes of objects. A range of each log.
SELECT event.number, event.step, event.slot_no, event.block_no, event.block_hash, event.key,
       event.received::text AS received, event.spent::text AS spent, event.undoes, event.body, wanted.subscription_no
FROM unnest($1::bigint[], $2::bigint[]) AS wanted (subscription_no, after)
CROSS JOIN LATERAL (
    SELECT page.*, event_object.body, row_number() OVER (ORDER BY number) AS nth,
           sum(octet_length(event_object.body)) OVER (ORDER BY number) AS bytes
    FROM (
        SELECT * FROM partner.event
        WHERE event.subscription_no = wanted.subscription_no AND number > wanted.after ORDER BY number LIMIT $3
    ) page
    JOIN partner.event_object USING (object_no)
) event
WHERE event.bytes <= $4 OR event.nth = 1
ORDER BY wanted.subscription_no, event.number

-- name: settle
-- Note the results of attempts, and what follows from each; returns the webhooks that are still as they were when they
-- were read, and which of them go on. What a request has changed meanwhile stays as it is. Who asks for it is told of
-- each webhook that is failing now: only an active one is sent to, so it was not before.
WITH attempt AS (
    SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::smallint[], $7::float8[],
                         $8::timestamptz[], $9::integer[], $10::smallint[], $11::smallint[], $12::text[])
         AS attempt (subscription_no, revision, number, result, state, failures, pause_s, tried_at, took_ms, nth,
                     status, error)
), settled AS (
    UPDATE partner.webhook
    SET delivered_number = CASE WHEN attempt.result = 'delivered' THEN attempt.number
                                ELSE webhook.delivered_number END,
        state = CASE WHEN webhook.state = 'active' THEN attempt.state ELSE webhook.state END,
        failures = attempt.failures, try_at = now() + make_interval(secs => attempt.pause_s), tried = webhook.tried + 1
    FROM attempt
    WHERE webhook.subscription_no = attempt.subscription_no AND webhook.revision = attempt.revision
    RETURNING webhook.subscription_no, webhook.tried, webhook.state
), kept AS (
    INSERT INTO partner.webhook_attempt AS kept
        (subscription_no, place, number, tried_at, took_ms, attempt, status, error)
    SELECT subscription_no, settled.tried % {places}, number, tried_at, took_ms, nth, status, error
    FROM settled JOIN attempt USING (subscription_no)
    ON CONFLICT (subscription_no, place) DO UPDATE
    SET number = excluded.number, tried_at = excluded.tried_at, took_ms = excluded.took_ms, attempt = excluded.attempt,
        status = excluded.status, error = excluded.error
), noticed AS (
    INSERT INTO partner.event_notice (network_id, owner, kind, body)
    SELECT subscription.network_id, subscription.credential_id, 'delivery.failing',
           json_build_object('subscription_id', subscription.id, 'number', attempt.number, 'status', attempt.status,
                             'error', attempt.error)
    FROM settled
    JOIN attempt USING (subscription_no)
    JOIN partner.subscription USING (subscription_no)
    WHERE settled.state = 'failing' AND attempt.state = 'failing'
), counted AS (
    INSERT INTO partner.webhook_total AS total (result, attempts) SELECT result, count(*) FROM attempt GROUP BY result
    ON CONFLICT (result) DO UPDATE SET attempts = total.attempts + excluded.attempts
)
SELECT subscription_no, state = 'active' AS goes_on FROM settled
