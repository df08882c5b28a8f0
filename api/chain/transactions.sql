-- A page of an address' transactions, oldest first. One statement, hence one snapshot, reads the tip, how many match and
-- the page: a row for each transaction and for one beyond the page, where the next begins; a single row with nulls where
-- the page is empty; no row where the network is not served. A page is a range of the primary key, so that every offset
-- costs the same; seq leaves no ties. LIMIT 1 makes two look-ups per row of it: Postgres can't know that a page is short,
-- and joins all blocks there are where an address has a large part of all transactions.
--   $1 raw address  $2 limit  $3 offset  $4 null or the lowest tx_id that matches  $5 null or the tx_id that no longer does
--   $6 whether the page is counted from the newest
-- name: history
WITH matching AS MATERIALIZED (
    SELECT address_id,
           CASE WHEN $4::bigint IS NULL THEN 0 ELSE address_tx_rank(address_id, $4) END AS first,
           CASE WHEN $5::bigint IS NOT NULL THEN address_tx_rank(address_id, $5)
                ELSE coalesce((SELECT max(seq) + 1 FROM address_tx WHERE address_id = address.address_id), 0) END AS beyond
    FROM address
    WHERE raw = $1
), page AS (
    SELECT address_id, beyond - first AS total,
           CASE WHEN $6 THEN beyond - 1 - $3::bigint - $2::bigint ELSE first + $3 END AS lowest
    FROM matching
)
SELECT tip.slot_no, tip.block_hash, coalesce(total, 0), block.slot_no, block.block_no, block.hash, tx.hash
FROM tip
LEFT JOIN page ON true
LEFT JOIN (
    address_tx
    CROSS JOIN LATERAL (SELECT * FROM tx WHERE tx_id = address_tx.tx_id LIMIT 1) tx
    CROSS JOIN LATERAL (SELECT * FROM block WHERE slot_no = address_tx.tx_id >> 16 LIMIT 1) block
) ON address_tx.address_id = page.address_id AND seq BETWEEN lowest AND lowest + $2
WHERE tip.phase = 'live'
ORDER BY seq

-- The same with what the transactions did.
-- name: detailed
WITH matching AS MATERIALIZED (
    SELECT address_id,
           CASE WHEN $4::bigint IS NULL THEN 0 ELSE address_tx_rank(address_id, $4) END AS first,
           CASE WHEN $5::bigint IS NOT NULL THEN address_tx_rank(address_id, $5)
                ELSE coalesce((SELECT max(seq) + 1 FROM address_tx WHERE address_id = address.address_id), 0) END AS beyond
    FROM address
    WHERE raw = $1
), page AS (
    SELECT address_id, beyond - first AS total,
           CASE WHEN $6 THEN beyond - 1 - $3::bigint - $2::bigint ELSE first + $3 END AS lowest
    FROM matching
)
SELECT tip.slot_no, tip.block_hash, coalesce(total, 0), block.slot_no, block.block_no, block.hash, tx.hash,
       tx.fee, tx.size, tx.inputs, tx.outputs
FROM tip
LEFT JOIN page ON true
LEFT JOIN (
    address_tx
    CROSS JOIN LATERAL (SELECT * FROM tx WHERE tx_id = address_tx.tx_id LIMIT 1) tx
    CROSS JOIN LATERAL (SELECT * FROM block WHERE slot_no = address_tx.tx_id >> 16 LIMIT 1) block
) ON address_tx.address_id = page.address_id AND seq BETWEEN lowest AND lowest + $2
WHERE tip.phase = 'live'
ORDER BY seq

-- One transaction with the tip of the same snapshot. Nulls where no transaction has the hash; no row where the network is
-- not served.
-- name: by_hash
SELECT tip.slot_no, tip.block_hash, block.slot_no, block.block_no, block.hash, tx.hash,
       tx.fee, tx.size, tx.inputs, tx.outputs, tx.extra
FROM tip
LEFT JOIN (tx JOIN block ON block.slot_no = tx_id >> 16) ON tx.hash = $1
WHERE tip.phase = 'live'
