-- name: lock
-- Lock a key until the end of this commit, so that no other request with it is executed meanwhile.
SELECT pg_advisory_xact_lock($1, $2)

-- name: lock_session
-- The same, until it is unlocked or the session ends.
SELECT pg_advisory_lock($1, $2)

-- name: unlock_session
SELECT pg_advisory_unlock($1, $2)

-- name: executed
-- The request that was executed with a key in the last 24 hours.
SELECT body_hash, target_id, issued_to, answer, invalidated
FROM partner.idempotency_key
WHERE key_hash = $1 AND created_at > now() - interval '24 hours'

-- name: remember
-- Replaces the row of the same key only if it has expired.
INSERT INTO partner.idempotency_key (key_hash, body_hash, target_id, issued_to, answer, invalidated)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (key_hash) DO UPDATE
SET created_at = excluded.created_at, body_hash = excluded.body_hash, target_id = excluded.target_id,
    issued_to = excluded.issued_to, answer = excluded.answer, invalidated = excluded.invalidated
WHERE idempotency_key.created_at <= now() - interval '24 hours'
