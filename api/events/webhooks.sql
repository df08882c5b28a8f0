-- The webhook of a subscription of a credential ($1, $2). Another credential's is not found, as ownership is a
-- condition of each statement.

-- name: subscription
-- The subscription; no row: foreign or missing.
SELECT subscription_no, last_number FROM partner.subscription
WHERE credential_id = $1 AND id = $2 AND state <> 'ended'

-- name: webhooks
-- Webhooks, and how far each has got.
SELECT webhook.subscription_no, id, url, webhook.state, webhook.created_at, delivered_number, last_number, failures,
       CASE WHEN webhook.state = 'active' AND failures > 0 THEN try_at END AS next_attempt_at,
       CASE WHEN former_until > now() THEN former_until END AS former_secret_until
FROM partner.subscription JOIN partner.webhook USING (subscription_no)
WHERE credential_id = $1 AND subscription.state <> 'ended' {and_page}

-- name: count
SELECT count(*) AS total FROM partner.subscription JOIN partner.webhook USING (subscription_no)
WHERE credential_id = $1 AND subscription.state <> 'ended'

-- name: attempts
-- The kept attempts of webhooks $1, the last one first: a few of each.
SELECT number, attempt, tried_at, took_ms, status, error, subscription_no
FROM partner.webhook_attempt WHERE subscription_no = ANY ($1::bigint[])
ORDER BY tried_at DESC, number DESC, attempt DESC

-- name: create
-- A webhook of subscription $1 with the URL $2 and the secret $3, for the events after number $4; no row if there is
-- one.
INSERT INTO partner.webhook (subscription_no, url, secret, delivered_number) VALUES ($1, $2, $3, $4)
ON CONFLICT (subscription_no) DO NOTHING
RETURNING true AS created

-- name: change
-- Another URL $2 for a webhook $1, for the events after number $3, those of before if it is null.
UPDATE partner.webhook
SET url = $2, delivered_number = coalesce($3, delivered_number), state = 'active', failures = 0, try_at = now(),
    revision = gen_random_uuid()
WHERE subscription_no = $1

-- name: rotate
-- A new secret $3. The present one signs as well for $4 hours; one from before that does no more.
UPDATE partner.webhook
SET former_secret = secret, former_until = now() + make_interval(hours => $4), secret = $3
FROM partner.subscription
WHERE {of_caller}

-- name: replay
-- Send the events after number $3 again, or skip those before. A failing webhook is active again.
UPDATE partner.webhook
SET delivered_number = $3, failures = 0, try_at = now(), revision = gen_random_uuid(),
    state = CASE webhook.state WHEN 'failing' THEN 'active' ELSE webhook.state END
FROM partner.subscription
WHERE {of_caller}

-- name: pause
-- Pause it, whatever its state, unless it has ended.
UPDATE partner.webhook SET state = 'paused'
FROM partner.subscription
WHERE {of_caller} AND webhook.state <> 'ended'

-- name: resume
-- Go on with the next event at once, unless the webhook has ended.
UPDATE partner.webhook SET state = 'active', failures = 0, try_at = now()
FROM partner.subscription
WHERE {of_caller} AND webhook.state <> 'ended'

-- name: delete
DELETE FROM partner.webhook USING partner.subscription
WHERE {of_caller}

-- name: of_caller
webhook.subscription_no = subscription.subscription_no AND credential_id = $1 AND id = $2
  AND subscription.state <> 'ended'

-- name: is_kept
-- Whether the event after number $2 of subscription $1 is kept, or not told yet.
SELECT $2 = last_number OR EXISTS (
    SELECT FROM partner.event WHERE event.subscription_no = subscription.subscription_no AND number = $2 + 1
) AS is_kept
FROM partner.subscription WHERE subscription_no = $1
