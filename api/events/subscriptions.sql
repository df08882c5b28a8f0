-- Subscriptions of a credential ($1). Another credential's is not found, as ownership is a condition of each statement.

-- name: lock_credential
-- One subscription of a credential is created at a time, so that it never has too many.
SELECT id FROM partner.credential WHERE id = $1 FOR NO KEY UPDATE

-- name: count
SELECT count(*) AS total FROM partner.subscription WHERE credential_id = $1 AND state <> 'ended'

-- name: create
-- $4 is the slot after which it begins, $5 whether it does so at once.
INSERT INTO partner.subscription (credential_id, network_id, confirmations, state, after_slot_no, at_slot_no)
VALUES ($1, $2, $3, CASE WHEN $5 THEN 'catching_up' ELSE 'new' END, $4, $4)
RETURNING id

-- name: begin
-- Begin a subscription that was to begin later. It begins where the chain is, if that has gone back meanwhile.
UPDATE partner.subscription
SET state = 'catching_up', after_slot_no = least(after_slot_no, $3), at_slot_no = least(after_slot_no, $3)
WHERE credential_id = $1 AND id = $2 AND state = 'new'

-- name: end
-- Its rows are dropped in the background (retention.py). No row: foreign or missing.
UPDATE partner.subscription SET state = 'ended' WHERE credential_id = $1 AND id = $2 AND state <> 'ended'
RETURNING subscription_no

-- name: lock
-- A subscription, locked; no row: foreign or missing.
SELECT subscription_no, subjects,
       (SELECT user_account_id FROM partner.credential WHERE id = $1) AS user_account_id
FROM partner.subscription
WHERE credential_id = $1 AND id = $2 AND state <> 'ended' FOR NO KEY UPDATE

-- name: add
-- Add subjects to a subscription $1 of network $2; a known one gets another direction and quantity. Returns for each
-- whether it is new.
INSERT INTO partner.subject (subscription_no, network_id, key, direction, least)
SELECT $1, $2, key, direction, least
FROM unnest($3::bytea[], $4::text[], $5::numeric[]) AS given (key, direction, least)
ORDER BY key
ON CONFLICT (network_id, key, subscription_no) DO UPDATE SET direction = excluded.direction, least = excluded.least
RETURNING xmax = 0 AS is_new

-- name: remove
DELETE FROM partner.subject WHERE subscription_no = $1 AND key = ANY ($2::bytea[])

-- name: change_subjects
-- Note how many subjects a subscription $1 has gained or lost, and since which step of the mark it has the new ones.
UPDATE partner.subscription
SET subjects = subjects + $2,
    live_step = CASE WHEN $2 > 0 AND live_step IS NOT NULL
                     THEN greatest(live_step, (SELECT step FROM partner.event_mark mark
                                               WHERE mark.network_id = subscription.network_id)) ELSE live_step END
WHERE subscription_no = $1

-- name: subscriptions
-- Subscriptions, and the blocks up to which their logs are complete: as many blocks before the mark as they have
-- confirmations. A look-up each.
SELECT subscription_no, id, created_at, network_id, state, confirmations, subjects, after_slot_no, last_number,
       complete.slot_no, complete.block_no, complete.block_hash
FROM partner.subscription
LEFT JOIN partner.event_mark mark USING (network_id)
LEFT JOIN LATERAL (
    SELECT slot_no, block_no, block_hash FROM partner.event_block
    WHERE event_block.network_id = subscription.network_id
      AND event_block.block_no = mark.block_no - subscription.confirmations AND NOT undone
    ORDER BY step DESC LIMIT 1
) complete ON state = 'live'
WHERE credential_id = $1 AND state <> 'ended' {and_page}

-- name: subjects
-- Subjects of a subscription $1, in order of the key.
SELECT key, direction, least::text AS least
FROM partner.subject WHERE subscription_no = $1 ORDER BY key LIMIT $2 OFFSET $3

-- name: events
-- At most $3 events of a subscription $1 after number $2, in order, fewer if their objects have more than $4 bytes, but
-- at least one. A range of the primary key.
SELECT number, step, slot_no, block_no, block_hash, key, received::text AS received, spent::text AS spent, undoes, body
FROM (
    SELECT page.*, event_object.body, row_number() OVER (ORDER BY number) AS nth,
           sum(octet_length(event_object.body)) OVER (ORDER BY number) AS bytes
    FROM (SELECT * FROM partner.event WHERE subscription_no = $1 AND number > $2 ORDER BY number LIMIT $3) page
    JOIN partner.event_object USING (object_no)
) sized
WHERE bytes <= $4 OR nth = 1
ORDER BY number

-- name: followed_block
-- The last time that a block of network $1 was followed, by its hash.
SELECT step, slot_no, undone FROM partner.event_block
WHERE network_id = $1 AND block_hash = $2 ORDER BY step DESC LIMIT 1

-- name: live_step
-- Since which step the log of a subscription has all its subjects; null if it is not live yet.
SELECT coalesce(live_step, -1) AS live_step FROM partner.subscription WHERE subscription_no = $1

-- name: number_at
-- The last event of a subscription $1 up to step $2 or, if that is not kept, the one before the first that is. Cost:
-- the events since then, which are of remembered blocks.
SELECT coalesce((
    SELECT number FROM partner.event WHERE subscription_no = $1 AND step <= $2 ORDER BY number DESC LIMIT 1
), (
    SELECT min(number) - 1 FROM partner.event WHERE subscription_no = $1
), (
    SELECT last_number FROM partner.subscription WHERE subscription_no = $1
)) AS number
