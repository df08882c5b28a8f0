-- Transactions. {effects} are the columns of inputs and outputs, for lists that show them. {owner}, {owner_no} and
-- {history} are tables and columns of an address or an account (owners.py), {named} finds its row. The history of a
-- payment credential is read through functions alone.

-- name: page
-- A page of an owner's transactions, oldest first, and one row beyond the page, where the next one begins; a single row
-- with nulls if the page is empty; no row if the network is not served. One statement, hence one snapshot, reads the
-- tip, the total and the page. A page is a range of chunks, so that every offset costs the same; seq leaves no ties.
-- NOTE: LIMIT 1 makes two look-ups per row. Without it Postgres, which can't know that a page is short, joins all
-- blocks if an owner has a large part of all transactions.
--   $1 raw address or reward account  $2 limit  $3 offset  $4 lowest tx_id that matches, or null  $5 first tx_id after
--       those that match, or null
--   $6 whether the offset counts from the newest
WITH matching AS MATERIALIZED (
    SELECT {owner_no},
           CASE WHEN $4::bigint IS NULL THEN 0 ELSE {history}_rank({owner_no}, $4) END AS first,
           CASE WHEN $5::bigint IS NOT NULL THEN {history}_rank({owner_no}, $5) ELSE {entries} END AS beyond
    FROM {owner}
    WHERE {named}
), page AS (
    SELECT {owner_no}, first, beyond, greatest(beyond - first, 0) AS total,
           CASE WHEN $6 THEN beyond - 1 - $3::bigint - $2::bigint ELSE first + $3 END AS lowest
    FROM matching
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, coalesce(total, 0) AS total,
       block.slot_no, block.block_no, block.hash AS block_hash, tx.hash AS tx_hash,
       entry.tx_id{effects}
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL {history}_range(
    page.{owner_no}, greatest(lowest, first), least(lowest + $2, beyond - 1)
) entry ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = entry.tx_id LIMIT 1) tx ON true
LEFT JOIN LATERAL (SELECT * FROM block WHERE slot_no = entry.tx_id >> 16 LIMIT 1) block ON true
WHERE tip.phase = 'live'
ORDER BY seq

-- name: entries
-- The number of entries in a history. Those of a payment credential are in two.
coalesce((
    SELECT (chunk << 6) + length(tx_ids) / 8 FROM {history} h
    WHERE h.{number} = {owner}.{owner_no} ORDER BY chunk DESC LIMIT 1
), 0)

-- name: by_hash
-- One transaction with the tip of the same snapshot; nulls if no transaction has the hash, no row if the network is not
-- served.
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.block_no AS tip_block_no,
       block.slot_no, block.block_no, block.hash AS block_hash, tx.hash AS tx_hash,
       tip.numbering, tx.fee, tx.size, tx.inputs, tx.outputs, tx.mint, tx.extra, tx.referred, tx.attached, tx.tx_id
FROM tip
LEFT JOIN (tx JOIN block ON block.slot_no = tx_id >> 16) ON tx.hash = $1
WHERE tip.phase = 'live'

-- name: inputs
-- The packed inputs of one transaction, for pages whose inputs are too many to be read at once; no row if it is not
-- indexed.
SELECT inputs FROM tx WHERE hash = $1
