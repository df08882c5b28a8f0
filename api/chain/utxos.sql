-- Outputs. Each statement is one snapshot, and returns no row if the network is not served. A list returns a single row
-- with nulls if the page is empty. The value of an output is in the packed outputs of its transaction, or in the
-- genesis.
--
-- Placeholders:
--   {owner} {owner_no} {utxo_bucket} {utxo_asset}  tables and columns of an address or an account
--   {order} {compare} {edge} {lag} {over}  the direction, as in assets.sql
--   {back} {beyond} {short}  the opposite order, a place that comes after another one in the direction, and one before

-- name: unspent
-- A page of the unspent outputs of an owner in the order in which they were made, and one row beyond the page. Buckets
-- skip to a large offset, so that every offset costs about the same; the rest of the offset is an index-only scan. An
-- owner without buckets has a few thousand outputs at most.
-- NOTE: after a cursor the whole offset is such a scan, 10,000 outputs in a millisecond.
--   $1 raw address or reward account  $2 limit  $3 offset  $4, $5 tx_id and output_index at which to begin, or null
WITH asked AS MATERIALIZED (
    SELECT {owner_no} FROM {owner} WHERE raw = $1
), bucket AS MATERIALIZED (
    SELECT outputs, sum(outputs) OVER in_order AS beyond,
           coalesce({lag}(lowest_tx_id) {over}, {edge}) AS tx_id,
           coalesce({lag}(lowest_output_index) {over}, 0) AS output_index
    FROM {utxo_bucket}
    WHERE {owner_no} = (SELECT {owner_no} FROM asked) AND $3::bigint >= 1000 AND $4::bigint IS NULL
    WINDOW in_order AS (ORDER BY lowest_tx_id {order}, lowest_output_index {order})
), start AS MATERIALIZED (
    (SELECT tx_id, output_index, $3 - (beyond - outputs) AS skipped FROM bucket WHERE beyond > $3
        ORDER BY beyond LIMIT 1)
    UNION ALL
    SELECT coalesce($4, {edge}), coalesce($5, 0), $3 WHERE NOT EXISTS (SELECT FROM bucket)
), page AS (
    SELECT tx_id, output_index FROM utxo
    WHERE {owner_no} = (SELECT {owner_no} FROM asked)
      AND (tx_id, output_index) {compare} ((SELECT tx_id FROM start), (SELECT output_index FROM start))
    ORDER BY tx_id {order}, output_index {order}
    LIMIT $2::bigint + 1 OFFSET (SELECT skipped FROM start)
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering, page.tx_id, page.output_index,
       coalesce(tx.hash, genesis.tx_hash) AS tx_hash, tx.outputs, tx.attached, genesis.address AS genesis_address,
       genesis.lovelace AS genesis_lovelace
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = page.tx_id LIMIT 1) tx ON true
LEFT JOIN LATERAL (SELECT * FROM genesis_output WHERE tx_id = page.tx_id LIMIT 1) genesis ON true
WHERE tip.phase = 'live'
ORDER BY page.tx_id {order}, page.output_index {order}

-- name: unspent_of_asset
-- The same for those outputs that hold an asset. Owners with buckets have an index of them; the others have a few
-- thousand outputs at most, each with the numbers of its assets.
-- NOTE: the offset is an index-only scan of the outputs with this asset, 10,000 in a millisecond. Buckets for each
-- asset of each owner would cost more in every block than these pages ever do. A cursor costs the same at any depth.
--   $1 to $5 as above  $6 policy  $7 name
WITH asked AS MATERIALIZED (
    SELECT {owner_no} FROM {owner} WHERE raw = $1
), wanted AS MATERIALIZED (
    SELECT asset_no FROM policy JOIN asset USING (policy_no)
    WHERE policy_id = $6 AND name = $7 AND first_tx_id IS NOT NULL
), page AS (
    (SELECT tx_id, output_index FROM {utxo_asset}
     WHERE {owner_no} = (SELECT {owner_no} FROM asked) AND asset_no = (SELECT asset_no FROM wanted)
       AND (tx_id, output_index) {compare} (coalesce($4, {edge}), coalesce($5, 0))
     ORDER BY tx_id {order}, output_index {order}
     LIMIT $2::bigint + 1 OFFSET $3)
    UNION ALL
    (SELECT tx_id, output_index FROM utxo
     WHERE {owner_no} = (SELECT {owner_no} FROM asked) AND (SELECT asset_no FROM wanted) = ANY (asset_nos)
       AND NOT EXISTS (SELECT FROM {utxo_bucket} bucket WHERE bucket.{owner_no} = (SELECT {owner_no} FROM asked))
       AND (tx_id, output_index) {compare} (coalesce($4, {edge}), coalesce($5, 0))
     ORDER BY tx_id {order}, output_index {order}
     LIMIT $2::bigint + 1 OFFSET $3)
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering, page.tx_id, page.output_index,
       coalesce(tx.hash, genesis.tx_hash) AS tx_hash, tx.outputs, tx.attached, genesis.address AS genesis_address,
       genesis.lovelace AS genesis_lovelace, EXISTS (SELECT FROM wanted) AS known
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = page.tx_id LIMIT 1) tx ON true
LEFT JOIN LATERAL (SELECT * FROM genesis_output WHERE tx_id = page.tx_id LIMIT 1) genesis ON true
WHERE tip.phase = 'live'
ORDER BY page.tx_id {order}, page.output_index {order}

-- name: unspent_of_credential
-- The same for the payment credential with the hash $1, whose outputs are in two lists that have none in common: those
-- at its first address (0), and those at all others (1). A list without buckets is taken as a single one here. The page
-- begins its search at the last bucket before which there are not more outputs than the offset, if all buckets that
-- have begun before it are counted as a whole. The one that reaches beyond this place, in the other list, is then
-- counted in part. So a few buckets are read, whatever the offset.
WITH asked AS MATERIALIZED (
    SELECT address_no AS no FROM address WHERE payment_hash(raw) = $1 AND credential_no IS NULL
), listed AS MATERIALIZED (
    SELECT 0 AS list, lowest_tx_id, lowest_output_index, outputs FROM utxo_bucket
    WHERE address_no = (SELECT no FROM asked) AND $3::bigint >= 1000 AND $4::bigint IS NULL
    UNION ALL
    SELECT 1, lowest_tx_id, lowest_output_index, outputs FROM credential_utxo_bucket
    WHERE credential_no = (SELECT no FROM asked) AND $3::bigint >= 1000 AND $4::bigint IS NULL
), complete AS MATERIALIZED (
    SELECT list, lowest_tx_id, lowest_output_index, outputs FROM listed
    UNION ALL
    SELECT 0, -9223372036854775808, 0, (SELECT count(*) FROM utxo WHERE address_no = (SELECT no FROM asked))
    WHERE $3::bigint >= 1000 AND $4::bigint IS NULL AND NOT EXISTS (SELECT FROM listed WHERE list = 0)
    UNION ALL
    SELECT 1, -9223372036854775808, 0, (SELECT count(*) FROM utxo WHERE credential_no = (SELECT no FROM asked))
    WHERE $3::bigint >= 1000 AND $4::bigint IS NULL AND NOT EXISTS (SELECT FROM listed WHERE list = 1)
), bucket AS MATERIALIZED (
    SELECT list, outputs, tx_id, output_index,
           sum(outputs) OVER (PARTITION BY list ORDER BY tx_id {order}, output_index {order}) - outputs AS before,
           sum(outputs) OVER (ORDER BY tx_id {order}, output_index {order}, list) - outputs AS at_most
    FROM (
        SELECT list, outputs, coalesce({lag}(lowest_tx_id) {over}, {edge}) AS tx_id,
               coalesce({lag}(lowest_output_index) {over}, 0) AS output_index
        FROM complete
        WINDOW in_order AS (PARTITION BY list ORDER BY lowest_tx_id {order}, lowest_output_index {order})
    ) entered
), start AS MATERIALIZED (
    (SELECT tx_id, output_index FROM bucket WHERE at_most <= $3
     ORDER BY tx_id {back}, output_index {back} LIMIT 1)
    UNION ALL
    SELECT coalesce($4, {edge}), coalesce($5, 0) WHERE NOT EXISTS (SELECT FROM bucket)
), entered AS MATERIALIZED (
    -- The bucket of each list in which that place is.
    SELECT DISTINCT ON (list) list, before, tx_id, output_index FROM bucket
    WHERE NOT (tx_id, output_index) {beyond} ((SELECT tx_id FROM start), (SELECT output_index FROM start))
    ORDER BY list, tx_id {back}, output_index {back}
), skipped AS MATERIALIZED (
    SELECT $3 - (SELECT coalesce(sum(before), 0)::bigint FROM entered) - (
        SELECT count(*) FROM utxo
        WHERE address_no = (SELECT no FROM asked)
          AND (tx_id, output_index) {compare} ((SELECT tx_id FROM entered WHERE list = 0),
                                               (SELECT output_index FROM entered WHERE list = 0))
          AND (tx_id, output_index) {short} ((SELECT tx_id FROM start), (SELECT output_index FROM start))
    ) - (
        SELECT count(*) FROM utxo
        WHERE credential_no = (SELECT no FROM asked)
          AND (tx_id, output_index) {compare} ((SELECT tx_id FROM entered WHERE list = 1),
                                               (SELECT output_index FROM entered WHERE list = 1))
          AND (tx_id, output_index) {short} ((SELECT tx_id FROM start), (SELECT output_index FROM start))
    ) AS outputs
), page AS (
    SELECT tx_id, output_index
    FROM (
        (SELECT tx_id, output_index FROM utxo
         WHERE address_no = (SELECT no FROM asked)
           AND (tx_id, output_index) {compare} ((SELECT tx_id FROM start), (SELECT output_index FROM start))
         ORDER BY tx_id {order}, output_index {order} LIMIT $2::bigint + 1 + (SELECT outputs FROM skipped))
        UNION ALL
        (SELECT tx_id, output_index FROM utxo
         WHERE credential_no = (SELECT no FROM asked)
           AND (tx_id, output_index) {compare} ((SELECT tx_id FROM start), (SELECT output_index FROM start))
         ORDER BY tx_id {order}, output_index {order} LIMIT $2::bigint + 1 + (SELECT outputs FROM skipped))
    ) both_lists
    ORDER BY tx_id {order}, output_index {order}
    LIMIT $2::bigint + 1 OFFSET (SELECT outputs FROM skipped)
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering, page.tx_id, page.output_index,
       coalesce(tx.hash, genesis.tx_hash) AS tx_hash, tx.outputs, tx.attached, genesis.address AS genesis_address,
       genesis.lovelace AS genesis_lovelace
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = page.tx_id LIMIT 1) tx ON true
LEFT JOIN LATERAL (SELECT * FROM genesis_output WHERE tx_id = page.tx_id LIMIT 1) genesis ON true
WHERE tip.phase = 'live'
ORDER BY page.tx_id {order}, page.output_index {order}

-- name: holding
-- The first outputs with an asset in one of those two lists, as far as a page may need them.
(SELECT tx_id, output_index FROM {utxo_asset}
 WHERE {owner_no} = (SELECT no FROM asked) AND asset_no = (SELECT asset_no FROM wanted)
   AND (tx_id, output_index) {compare} (coalesce($4, {edge}), coalesce($5, 0))
 ORDER BY tx_id {order}, output_index {order} LIMIT $2::bigint + 1 + $3::bigint)
UNION ALL
(SELECT tx_id, output_index FROM utxo
 WHERE {owner_no} = (SELECT no FROM asked) AND (SELECT asset_no FROM wanted) = ANY (asset_nos)
   AND NOT EXISTS (SELECT FROM {utxo_bucket} bucket WHERE bucket.{owner_no} = (SELECT no FROM asked))
   AND (tx_id, output_index) {compare} (coalesce($4, {edge}), coalesce($5, 0))
 ORDER BY tx_id {order}, output_index {order} LIMIT $2::bigint + 1 + $3::bigint)

-- name: unspent_of_asset_of_credential
-- The outputs of the payment credential with the hash $1 that hold an asset, from both its lists.
--   $2 to $7 as in unspent_of_asset
WITH asked AS MATERIALIZED (
    SELECT address_no AS no FROM address WHERE payment_hash(raw) = $1 AND credential_no IS NULL
), wanted AS MATERIALIZED (
    SELECT asset_no FROM policy JOIN asset USING (policy_no)
    WHERE policy_id = $6 AND name = $7 AND first_tx_id IS NOT NULL
), page AS (
    SELECT tx_id, output_index FROM ({sources}) sources
    ORDER BY tx_id {order}, output_index {order} LIMIT $2::bigint + 1 OFFSET $3
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering, page.tx_id, page.output_index,
       coalesce(tx.hash, genesis.tx_hash) AS tx_hash, tx.outputs, tx.attached, genesis.address AS genesis_address,
       genesis.lovelace AS genesis_lovelace, EXISTS (SELECT FROM wanted) AS known
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = page.tx_id LIMIT 1) tx ON true
LEFT JOIN LATERAL (SELECT * FROM genesis_output WHERE tx_id = page.tx_id LIMIT 1) genesis ON true
WHERE tip.phase = 'live'
ORDER BY page.tx_id {order}, page.output_index {order}

-- name: output
-- The output $2 of the transaction $1, with nulls for an unknown transaction, the transaction that has spent it, and
-- the slot in which an era dropped it. The row of spender for the slot has at most as many entries as the transactions
-- of one block have outputs.
WITH made AS MATERIALIZED (
    SELECT tx_id, hash AS tx_hash, outputs, attached, NULL::bytea AS address, NULL::bigint AS lovelace FROM tx
        WHERE hash = $1
    UNION ALL
    SELECT tx_id, tx_hash, NULL, NULL, address, lovelace FROM genesis_output WHERE tx_hash = $1 AND $2::integer = 0
    LIMIT 1
), spent AS MATERIALIZED (
    SELECT tx_id_at(entries, place * 12) AS tx_id
    FROM spender, generate_series(0, length(entries) / 12 - 1) AS place
    WHERE slot_no = (SELECT tx_id >> 16 FROM made)
      AND substr(entries, place * 12 + 9, 4)
        = substr(int8send(((SELECT tx_id FROM made) & 65535) << 16 | $2::integer), 5)
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering, made.tx_id, $2 AS output_index,
       made.tx_hash, made.outputs, made.attached, made.address AS genesis_address, made.lovelace AS genesis_lovelace,
       spent.tx_id AS spent_tx_id, (SELECT hash FROM tx WHERE tx.tx_id = spent.tx_id) AS spent_hash,
       (SELECT slot_no FROM dropped_output d WHERE d.tx_id = made.tx_id AND d.output_index = $2) AS dropped_slot_no
FROM tip
LEFT JOIN made ON true
LEFT JOIN spent ON true
WHERE tip.phase = 'live'
