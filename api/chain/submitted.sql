-- Submitted transactions of the account that a credential belongs to: $1 is the network, $2 the hash, $3 the
-- credential.

-- name: submitted
-- One submitted transaction. O(1), by index.
SELECT submitted_at, rolled_back_at, accepted, invalid_hereafter::text AS invalid_hereafter, cbor
FROM partner.submitted_tx
WHERE network_id = $1 AND tx_hash = $2
  AND user_account_id = (SELECT user_account_id FROM partner.credential WHERE id = $3)

-- name: block_of
-- The block that contains a transaction, and how many blocks of our chain follow it. O(1), by index.
SELECT block.block_no, block.hash AS block_hash, block.slot_no,
       (SELECT block_no FROM tip) - block.block_no AS confirmations
FROM tx JOIN block ON block.slot_no = tx.tx_id >> 16
WHERE tx.hash = $1

-- name: announce
-- Write the row before the node gets the transaction, so that anything that happens to it later is noted. An existing
-- row of the account stays unchanged. Returns whether the row is new (without a former version, xmax is 0), and when it
-- was last rolled back.
INSERT INTO partner.submitted_tx AS present (network_id, tx_hash, user_account_id, accepted, invalid_hereafter, cbor)
SELECT $1, $2, user_account_id, false, $4, $5 FROM partner.credential WHERE id = $3
ON CONFLICT (network_id, tx_hash, user_account_id) DO UPDATE SET accepted = present.accepted
RETURNING xmax = 0 AS is_new, rolled_back_at

-- name: before
-- The row, locked, before the node's acceptance is recorded: whether it says so already, and nothing was rolled back
-- since.
SELECT accepted AND rolled_back_at IS NULL AS is_pending, user_account_id
FROM partner.submitted_tx
WHERE network_id = $1 AND tx_hash = $2
  AND user_account_id = (SELECT user_account_id FROM partner.credential WHERE id = $3)
FOR NO KEY UPDATE

-- name: accept
-- The node has accepted the transaction now or, if $6 is true, earlier, since a block contains it. The first accepted
-- CBOR is kept. If its last rollback was at $7, before it was announced, the node has accepted it again since; after a
-- later rollback, perhaps not.
INSERT INTO partner.submitted_tx AS present (network_id, tx_hash, user_account_id, accepted, invalid_hereafter, cbor)
SELECT $1, $2, user_account_id, true, $4, $5 FROM partner.credential WHERE id = $3
ON CONFLICT (network_id, tx_hash, user_account_id) DO UPDATE
SET accepted = true, cbor = CASE WHEN present.accepted THEN present.cbor ELSE excluded.cbor END,
    submitted_at = CASE WHEN $6 THEN present.submitted_at ELSE excluded.submitted_at END,
    rolled_back_at = CASE WHEN $6 OR present.rolled_back_at IS DISTINCT FROM $7 THEN present.rolled_back_at END

-- name: withdraw
-- The node has refused the announced transaction. The row of an earlier submission stays.
DELETE FROM partner.submitted_tx
WHERE network_id = $1 AND tx_hash = $2 AND NOT accepted AND rolled_back_at IS NULL
  AND user_account_id = (SELECT user_account_id FROM partner.credential WHERE id = $3)

-- name: drop_surplus
-- Keep the last $3 of the account $2's transactions of a network: delete the oldest ones, at most ten. Reads $3 entries
-- of an index. Skips those that are being changed, so that an indexer that rolls back never waits for us while we wait
-- for it.
WITH account AS (
    SELECT user_account_id AS id FROM partner.credential WHERE id = $2
), last AS (
    SELECT submitted_at FROM partner.submitted_tx
    WHERE user_account_id = (SELECT id FROM account) AND network_id = $1
    ORDER BY submitted_at DESC OFFSET $3 LIMIT 1
), old AS (
    SELECT tx_hash FROM partner.submitted_tx
    WHERE user_account_id = (SELECT id FROM account) AND network_id = $1
      AND submitted_at <= (SELECT submitted_at FROM last)
    ORDER BY submitted_at LIMIT 10
    FOR UPDATE SKIP LOCKED
)
DELETE FROM partner.submitted_tx AS each USING old
WHERE each.network_id = $1 AND each.tx_hash = old.tx_hash AND each.user_account_id = (SELECT id FROM account)
