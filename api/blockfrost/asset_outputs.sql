-- name: unspent
-- A page of the unspent outputs that hold an asset, in the order in which they were made, with the number of its
-- holders, up to {most}; null if there is no such asset. With as many holders, the page is empty. {order} is the
-- direction. Cost: as for a page of each holder's outputs with an asset (`unspent_of_asset` of api/chain/utxos.sql),
-- to the end of the page.
--   $1 policy  $2 name  $3 limit  $4 offset  $5 lowest tx_id, or null  $6 first tx_id after the last, or null
WITH asked AS MATERIALIZED (
    SELECT asset_no FROM policy JOIN asset USING (policy_no)
    WHERE policy_id = $1 AND name = $2 AND first_tx_id IS NOT NULL
), held AS MATERIALIZED (
    SELECT address_no FROM holder WHERE asset_no = (SELECT asset_no FROM asked) LIMIT {most}
), counted AS MATERIALIZED (
    SELECT count(*) AS holders FROM held
), page AS MATERIALIZED (
    SELECT tx_id, output_index
    FROM held
    CROSS JOIN LATERAL (
        (SELECT tx_id, output_index FROM utxo_asset
         WHERE utxo_asset.address_no = held.address_no AND asset_no = (SELECT asset_no FROM asked)
           AND tx_id >= coalesce($5::bigint, -9223372036854775808) AND tx_id < coalesce($6, 9223372036854775807)
         ORDER BY tx_id {order}, output_index {order}
         LIMIT $3::bigint + $4::bigint)
        UNION ALL
        (SELECT tx_id, output_index FROM utxo
         WHERE utxo.address_no = held.address_no AND (SELECT asset_no FROM asked) = ANY (asset_nos)
           AND NOT EXISTS (SELECT FROM utxo_bucket bucket WHERE bucket.address_no = held.address_no)
           AND tx_id >= coalesce($5, -9223372036854775808) AND tx_id < coalesce($6, 9223372036854775807)
         ORDER BY tx_id {order}, output_index {order}
         LIMIT $3 + $4)
    ) output
    WHERE (SELECT holders FROM counted) < {most}
    ORDER BY tx_id {order}, output_index {order}
    LIMIT $3 OFFSET $4
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering, page.tx_id, page.output_index,
       tx.hash AS tx_hash, tx.outputs, tx.attached, NULL::bytea AS genesis_address, NULL::bigint AS genesis_lovelace,
       CASE WHEN EXISTS (SELECT FROM asked) THEN (SELECT holders FROM counted) END AS holders
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = page.tx_id LIMIT 1) tx ON true
WHERE tip.phase = 'live'
ORDER BY page.tx_id {order}, page.output_index {order}
