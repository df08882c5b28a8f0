-- The logs of subscriptions: what the follower of a network ($1 in most statements) writes.

-- name: is_followed
-- Whether a session holds the lock $1, $2 of a network's follower.
SELECT EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND classid::bigint = $1::bigint AND objid::bigint = $2::bigint AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
) AS followed

-- name: try_to_follow
SELECT pg_try_advisory_lock($1, $2) AS ours

-- name: mark
SELECT step, slot_no, block_no, block_hash FROM partner.event_mark WHERE network_id = $1

-- name: lock_mark
-- Wait for all that share the lock $1, $2 of a network's mark, and keep it until the end of this commit. Whoever asks
-- for it later waits behind this session. A statement of its own, so that the next one sees what those have written.
SELECT pg_advisory_xact_lock($1, $2)

-- name: share_mark
-- Share the lock $1, $2 until the end of this commit: the mark stays where it is. A statement of its own as well.
SELECT pg_advisory_xact_lock_shared($1, $2)

-- name: held
-- Whether there is any subject, whether any begins with $3, and whether any event waits for confirmations; no row if
-- the mark is at another step than $2.
SELECT EXISTS (SELECT FROM partner.subject WHERE network_id = $1) AS is_watched,
       EXISTS (SELECT FROM partner.subject
               WHERE network_id = $1 AND key >= $3::bytea AND key < $3::bytea || '\xff'::bytea) AS has_submitters,
       EXISTS (SELECT FROM partner.event_waiting WHERE network_id = $1) AS has_waiting
FROM partner.event_mark WHERE network_id = $1 AND step = $2

-- name: begin
-- The first mark of a network.
INSERT INTO partner.event_mark (network_id, step, slot_no, block_no, block_hash) VALUES ($1, $2, $3, $4, $5)

-- name: move_mark
UPDATE partner.event_mark SET step = $2, slot_no = $3, block_no = $4, block_hash = $5 WHERE network_id = $1

-- name: remember
-- Remember the blocks that the mark passes, with their steps, and forget those below number $2: few, as this is part of
-- every move.
WITH forgotten AS (DELETE FROM partner.event_block WHERE network_id = $1 AND block_no < $2)
INSERT INTO partner.event_block (network_id, step, slot_no, block_no, block_hash)
SELECT $1, step, slot_no, block_no, block_hash
FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[]) AS passed (step, slot_no, block_no, block_hash)

-- name: blocks_down
-- The $3 last blocks up to number $2 that are not undone, the last one first.
SELECT slot_no, block_no, block_hash FROM partner.event_block
WHERE network_id = $1 AND block_no <= $2 AND NOT undone
ORDER BY block_no DESC LIMIT $3

-- name: steps
-- The steps of the remembered blocks with numbers from $2 to $3.
SELECT block_hash, step FROM partner.event_block
WHERE network_id = $1 AND block_no BETWEEN $2 AND $3 AND NOT undone

-- name: matching
-- The subjects among the keys $2, of subscriptions that are live or, while they catch up, of those in $3. A look-up for
-- each key, and one for each match: the cost does not depend on other subjects. OFFSET and LIMIT keep it so.
SELECT wanted.key, subject.subscription_no, subject.direction, subject.least::text AS least,
       subscription.confirmations, subscription.at_slot_no
FROM unnest($2::bytea[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT subscription_no, direction, least FROM partner.subject WHERE network_id = $1 AND key = wanted.key OFFSET 0
) subject
CROSS JOIN LATERAL (
    SELECT confirmations, at_slot_no FROM partner.subscription
    WHERE subscription_no = subject.subscription_no AND {those} LIMIT 1
) subscription

-- name: number_objects
SELECT nextval('partner.event_object_object_no_seq') AS object_no FROM generate_series(1, $1::integer)

-- name: add_objects
INSERT INTO partner.event_object (object_no, body)
SELECT object_no, body FROM unnest($1::bigint[], $2::text[]) AS made (object_no, body)

-- name: has_notices
-- Whether anything is to be told that is in no block, of the kinds $2.
SELECT EXISTS (SELECT FROM partner.event_notice WHERE network_id = $1 AND kind = ANY ($2::text[])) AS has_notices

-- name: take_notices
-- Take the $3 first notices of the kinds $2. Who deletes them appends them in the same commit.
DELETE FROM partner.event_notice
WHERE network_id = $1 AND notice_no IN (
    SELECT notice_no FROM partner.event_notice
    WHERE network_id = $1 AND kind = ANY ($2::text[]) ORDER BY notice_no LIMIT $3)
RETURNING notice_no, kind, owner, body

-- name: notify
-- Append notices to logs, in the order of the arrays, with the block $3, $4, $5 of the mark. To a log that is live they
-- belong to step $2, the one after the mark's: whoever has loaded the state of the mark's block reads them. In one that
-- is not live yet, they share the step of its last event.
WITH told AS (
    SELECT told.*, row_number() OVER (PARTITION BY subscription_no ORDER BY place) AS nth
    FROM unnest($6::bigint[], $7::bytea[], $8::bigint[]) WITH ORDINALITY
         AS told (subscription_no, key, object_no, place)
), {numbered}
INSERT INTO partner.event (subscription_no, number, step, network_id, slot_no, block_no, block_hash, key, object_no,
                           undone)
SELECT subscription_no, before + nth,
       CASE (SELECT state FROM partner.subscription WHERE subscription_no = told.subscription_no)
           WHEN 'live' THEN $2
           ELSE coalesce((SELECT step FROM partner.event WHERE subscription_no = told.subscription_no
                          ORDER BY number DESC LIMIT 1), 0) END,
       $1, $3, $4, $5, key, object_no, true
FROM told JOIN numbered USING (subscription_no)

-- name: append
-- Append events to logs, in the order of the arrays, or keep those with confirmations until their blocks have these. $2
-- are their objects, each once; $10 are the places in it. One statement, as each costs as much as some events.
WITH object AS (
    SELECT nextval('partner.event_object_object_no_seq') AS object_no, body, object_place
    FROM unnest($2::text[]) WITH ORDINALITY AS made (body, object_place)
), kept AS (
    INSERT INTO partner.event_object (object_no, body) SELECT object_no, body FROM object
), happened AS (
    SELECT happened.*, object.object_no
    FROM unnest($3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bytea[], $8::numeric[], $9::numeric[],
                $10::bigint[], $11::bigint[], $12::smallint[]) WITH ORDINALITY
         AS happened (subscription_no, key, slot_no, block_no, block_hash, received, spent, object_place, step,
                      confirmations, place)
    JOIN object USING (object_place)
), waiting AS (
    INSERT INTO partner.event_waiting (network_id, due_block_no, subscription_no, key, slot_no, block_no, block_hash,
                                       received, spent, object_no, place)
    SELECT $1, block_no + confirmations, subscription_no, key, slot_no, block_no, block_hash, received, spent,
           object_no, place
    FROM happened WHERE confirmations > 0
), told AS (
    SELECT happened.*, row_number() OVER (PARTITION BY subscription_no ORDER BY place) AS nth
    FROM happened WHERE confirmations = 0
), {numbered}
INSERT INTO partner.event (subscription_no, number, step, network_id, slot_no, block_no, block_hash, key, received,
                           spent, object_no, undone)
SELECT subscription_no, before + nth, step, $1, slot_no, block_no, block_hash, key, received, spent, object_no, false
FROM told JOIN numbered USING (subscription_no)

-- name: numbered
-- Take numbers for the rows of `told`.
numbered AS (
    UPDATE partner.subscription SET last_number = last_number + added.events
    FROM (SELECT subscription_no, count(*) AS events FROM told GROUP BY subscription_no) added
    WHERE subscription.subscription_no = added.subscription_no
    RETURNING subscription.subscription_no, last_number - added.events AS before
)

-- name: tell_due
-- Append the events that are due at block $3 to logs, in step $2.
WITH due AS (
    DELETE FROM partner.event_waiting WHERE network_id = $1 AND due_block_no <= $3
    RETURNING subscription_no, key, slot_no, block_no, block_hash, received, spent, object_no, place
), told AS (
    SELECT due.*, row_number() OVER (PARTITION BY subscription_no ORDER BY slot_no, place) AS nth FROM due
), {numbered}
INSERT INTO partner.event (subscription_no, number, step, network_id, slot_no, block_no, block_hash, key, received,
                           spent, object_no, undone)
SELECT subscription_no, before + nth, $2, $1, slot_no, block_no, block_hash, key, received, spent, object_no, false
FROM told JOIN numbered USING (subscription_no)

-- name: undo
-- Append to each log, in step $2, the undoing of what it was told of blocks after slot $3, the last one first.
WITH undone AS (
    UPDATE partner.event SET undone = true WHERE network_id = $1 AND slot_no > $3 AND NOT undone
    RETURNING subscription_no, number, slot_no, block_no, block_hash, key, received, spent, object_no
), told AS (
    SELECT undone.*, row_number() OVER (PARTITION BY subscription_no ORDER BY number DESC) AS nth FROM undone
), {numbered}
INSERT INTO partner.event (subscription_no, number, step, network_id, slot_no, block_no, block_hash, key, received,
                           spent, object_no, undoes, undone)
SELECT subscription_no, before + nth, $2, $1, slot_no, block_no, block_hash, key, received, spent, object_no, number,
       true
FROM told JOIN numbered USING (subscription_no)

-- name: reset
-- Append to each log that begins after slot $3, in step $2, that blocks from before its beginning were undone. Now it
-- begins after that slot. $4 and $5 are number and hash of the last block that is left, $6 is the object, $7 the key.
WITH told AS (
    UPDATE partner.subscription SET after_slot_no = $3, last_number = last_number + 1
    WHERE network_id = $1 AND after_slot_no > $3 AND state IN ('catching_up', 'live')
    RETURNING subscription_no, last_number
)
INSERT INTO partner.event (subscription_no, number, step, network_id, slot_no, block_no, block_hash, key, object_no,
                           undone)
SELECT subscription_no, last_number, $2, $1, $3, $4, $5, $7, $6, true FROM told

-- name: begins_after
-- Whether any log begins after slot $2.
SELECT EXISTS (
    SELECT FROM partner.subscription
    WHERE network_id = $1 AND after_slot_no > $2 AND state IN ('catching_up', 'live')
) AS begins_after

-- name: forget_waiting
-- Drop the events that wait for confirmations of blocks after slot $2.
DELETE FROM partner.event_waiting WHERE network_id = $1 AND slot_no > $2

-- name: undo_blocks
-- Mark the blocks above number $2 as undone.
UPDATE partner.event_block SET undone = true WHERE network_id = $1 AND block_no > $2 AND NOT undone

-- name: set_back
-- Subscriptions that are catching up read the blocks after slot $2 again.
UPDATE partner.subscription SET at_slot_no = $2
WHERE network_id = $1 AND state = 'catching_up' AND at_slot_no > $2

-- name: catching_up
-- Subscriptions that are not live yet: the $2 that are furthest behind, and the $2 that are nearest to the mark.
(SELECT subscription_no, at_slot_no FROM partner.subscription
 WHERE network_id = $1 AND state = 'catching_up' ORDER BY at_slot_no LIMIT $2)
UNION
(SELECT subscription_no, at_slot_no FROM partner.subscription
 WHERE network_id = $1 AND state = 'catching_up' ORDER BY at_slot_no DESC LIMIT $2)

-- name: caught_up
-- The subscriptions $1 have been told of the blocks up to slot $2. With a step $3, which is that of the mark, they are
-- live now.
UPDATE partner.subscription
SET at_slot_no = greatest(at_slot_no, $2), state = CASE WHEN $3::bigint IS NULL THEN state ELSE 'live' END,
    live_step = $3::bigint
WHERE subscription_no = ANY ($1::bigint[]) AND state = 'catching_up'
