-- name: unspent
-- A page of the unspent outputs with the reference script $1, in the order in which they were made; $2 limit, $3
-- offset, {order} the direction. With nulls if the page is empty, and no row if the network is not served.
-- NOTE: the offset is an index-only scan of the unspent outputs with this script.
WITH page AS MATERIALIZED (
    SELECT tx_id, output_index FROM script_output
    WHERE script_hash = $1 AND spent_tx_id IS NULL
    ORDER BY tx_id {order}, output_index {order}
    LIMIT $2 OFFSET $3
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering, page.tx_id, page.output_index,
       tx.hash AS tx_hash, tx.outputs, tx.attached, NULL::bytea AS genesis_address, NULL::bigint AS genesis_lovelace,
       EXISTS (SELECT FROM script WHERE hash = $1) AS known
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = page.tx_id LIMIT 1) tx ON true
WHERE tip.phase = 'live'
ORDER BY page.tx_id {order}, page.output_index {order}
