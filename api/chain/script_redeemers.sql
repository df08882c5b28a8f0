-- name: listed
-- A page of the redeemers of the script with hash $1 and key $2, oldest first, each as its transaction, with what
-- tells the outputs that it spends; $3 limit, $4 offset, $5 whether the offset counts from the newest. `place` is that
-- among the redeemers of its transaction for the script, which may have some before the page: a transaction of 16 kB
-- has less than 2,000. A single row with nulls if the page is empty, no row if the network is not served. Cost: some 70
-- chunks at any offset, and two look-ups for each redeemer.
WITH listed AS MATERIALIZED (
    SELECT (chunk::bigint << 6) + length(tx_ids) / 8 AS total FROM redeemer_tx
    WHERE script_key = $2 ORDER BY chunk DESC LIMIT 1
), page AS MATERIALIZED (
    SELECT total, greatest(lowest, 0) AS lowest, lowest + $3::bigint - 1 AS highest
    FROM (
        SELECT total, CASE WHEN $5 THEN total - $4::bigint - $3::bigint ELSE $4::bigint END AS lowest FROM listed
    ) ends
), entry AS MATERIALIZED (
    SELECT seq, tx_id, lowest
    FROM page CROSS JOIN LATERAL redeemer_tx_range($2, greatest(lowest - 4096, 0), highest) entry
), placed AS (
    SELECT seq, tx_id, lowest, row_number() OVER (PARTITION BY tx_id ORDER BY seq) - 1 AS place FROM entry
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, EXISTS (SELECT FROM script WHERE hash = $1) AS known,
       coalesce((SELECT total FROM listed), 0) AS total, shown.place, shown.tx_id, tx.hash AS tx_hash, tx.inputs,
       tx.extra
FROM tip
LEFT JOIN (SELECT * FROM placed WHERE seq >= lowest) shown ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx.tx_id = shown.tx_id LIMIT 1) tx ON true
WHERE tip.phase = 'live'
ORDER BY shown.seq

-- name: locked_by
-- Those of the addresses $2 that the script with hash $1 locks. Cost: a look-up each.
SELECT address_no FROM address
WHERE address_no = ANY ($2::integer[]) AND payment_hash(raw) = $1 AND script_key(raw) IS NOT NULL
