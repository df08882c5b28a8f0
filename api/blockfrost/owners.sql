-- name: plain
-- A page of the unspent outputs of an owner without assets, in the order in which they were made; $2 limit, $3 offset,
-- {order} the direction. At most its first {most} outputs are searched; `cut` tells whether the page may lack some of
-- those beyond. With nulls if the page is empty, and no row if the network is not served.
-- Cost: an index scan up to the end of the page, which reads the row of each output.
WITH asked AS MATERIALIZED (
    SELECT address_no FROM address WHERE {named}
), first AS MATERIALIZED (
    SELECT tx_id, output_index, asset_nos FROM ({lists}) lists
    ORDER BY tx_id {order}, output_index {order} LIMIT {most} + 1
), page AS MATERIALIZED (
    SELECT tx_id, output_index FROM (SELECT * FROM first LIMIT {most}) searched WHERE asset_nos IS NULL
    ORDER BY tx_id {order}, output_index {order} LIMIT $2::bigint OFFSET $3::bigint
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering, page.tx_id, page.output_index,
       coalesce(tx.hash, genesis.tx_hash) AS tx_hash, tx.outputs, tx.attached, genesis.address AS genesis_address,
       genesis.lovelace AS genesis_lovelace,
       (SELECT count(*) FROM page) < $2::bigint AND (SELECT count(*) FROM first) > {most} AS cut
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = page.tx_id LIMIT 1) tx ON true
LEFT JOIN LATERAL (SELECT * FROM genesis_output WHERE tx_id = page.tx_id LIMIT 1) genesis ON true
WHERE tip.phase = 'live'
ORDER BY page.tx_id {order}, page.output_index {order}

-- name: of_list
-- The first outputs of one of its lists, and one beyond those that are searched.
(SELECT tx_id, output_index, asset_nos FROM utxo WHERE {owner_no} = (SELECT address_no FROM asked)
 ORDER BY tx_id {order}, output_index {order} LIMIT {most} + 1)
