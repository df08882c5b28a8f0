-- Transaction metadata by label. Each statement is one snapshot, and returns no row if the network is not served; a
-- single row with nulls if the page is empty.

-- name: labels
-- A page of the labels by number from $3 to $4, and one beyond the page, with the number of transactions of each: two
-- look-ups; $1 limit, $2 offset. Cost: the offset is an index-only scan of one entry for each label before the page, of
-- {most} at most. What follows these is read for a greater offset, too.
WITH page AS MATERIALIZED (
    SELECT label_no FROM label_tx WHERE chunk = 0 AND label_no BETWEEN $3 AND $4
    ORDER BY label_no {order} LIMIT $1::bigint + 1 OFFSET least($2::bigint, {most})
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, page.label_no, (
           SELECT (chunk << 6) + length(tx_ids) / 8 FROM label_tx
           WHERE label_tx.label_no = page.label_no ORDER BY chunk DESC LIMIT 1
       ) AS transactions
FROM tip LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.label_no {order}

-- name: labelled
-- A page of the transactions with metadata under a label, oldest first: a range of the primary key, at the same cost
-- for any offset.
-- NOTE: LIMIT 1 makes two look-ups per row, as in transactions.sql.
--   $1 number of the label  $2 limit  $3 offset  $4 whether the offset counts from the newest
WITH listed AS MATERIALIZED (
    SELECT (chunk << 6) + length(tx_ids) / 8 AS total FROM label_tx WHERE label_no = $1 ORDER BY chunk DESC LIMIT 1
), page AS (
    SELECT total, CASE WHEN $4 THEN total - $3::bigint - $2::bigint ELSE $3 END AS lowest FROM listed
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, coalesce(page.total, 0) AS total, tx.hash AS tx_hash,
       block.hash AS block_hash, block.block_no, block.slot_no, tx.extra
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL label_tx_range($1, greatest(lowest, 0), lowest + $2 - 1) entry ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = entry.tx_id LIMIT 1) tx ON true
LEFT JOIN LATERAL (SELECT * FROM block WHERE slot_no = entry.tx_id >> 16 LIMIT 1) block ON true
WHERE tip.phase = 'live'
ORDER BY seq
