-- Assets. Each statement is one snapshot, and returns no row if the network is not served. A list returns a single row
-- with nulls if the page is empty. `all_holders` is the exception: it reads no tip.
--
-- Placeholders of lists by amount, which are read in either direction:
--   {order} {compare} {edge}  the direction, the comparison that keeps the rows ahead, the bound before all rows
--   {lag} {over}  empty when reading upwards, where a bucket begins at its own bound; `lag` and `OVER in_order` when
--       reading
--     downwards, where it begins at the previous bucket's bound. In the two directions, a column of `bucket` is
--       coalesce((lowest_quantity), '-Infinity') AS quantity
--       coalesce(lag(lowest_quantity) OVER in_order, 'Infinity') AS quantity
-- of lists of holders:
--   {holder} {held_no}  the table, and its column for the asset or policy that is held
--   {owner_no} {raw}  its column for the holder, an address or an account, and the bytes of that address or account
--   {asked} {exists}  how the asset or policy is found, and whether it exists; an unseen policy has an empty list
-- of histories:
--   {history}  the table: transactions with the asset in their outputs (asset_tx), or those that minted or burned it
--       (mint)
--   {last} {length}  the column that orders its rows, and the length of the history according to its last row

-- name: asset
-- An asset $2 of a policy $1; nulls if it does not exist. Its metadata comes from the last transaction that minted and
-- named it (CIP-25), and from the present datum of the reference token $3 (CIP-68); if several outputs hold the token,
-- from that of the last one.
SELECT asset.supply::text AS supply, asset.mint_count, asset.burn_count, asset.first_mint_tx_id,
       first.hash AS first_mint_hash, naming.extra AS named_extra, datum.body AS datum
FROM tip
LEFT JOIN (policy JOIN asset USING (policy_no))
       ON policy.policy_id = $1 AND asset.name = $2 AND asset.first_tx_id IS NOT NULL
LEFT JOIN tx first ON first.tx_id = asset.first_mint_tx_id
LEFT JOIN LATERAL (
    SELECT tx.extra FROM mint JOIN tx USING (tx_id)
    WHERE mint.asset_no = asset.asset_no AND named ORDER BY seq DESC LIMIT 1
) naming ON true
LEFT JOIN LATERAL (
    SELECT r.datum_hash
    FROM asset reference JOIN reference_output r USING (asset_no)
    WHERE reference.policy_no = asset.policy_no AND reference.name = $3 AND r.spent_tx_id IS NULL
    ORDER BY r.tx_id DESC, r.output_index DESC LIMIT 1
) held ON true
LEFT JOIN datum ON datum.hash = held.datum_hash
WHERE tip.phase = 'live'

-- name: by_fingerprint
-- Assets whose CIP-14 digests begin with the 8 bytes $1: almost always at most one, two only if somebody has searched
-- for a collision. A single row with nulls if no asset matches. One look-up.
SELECT policy.policy_id, asset.name AS asset_name
FROM tip LEFT JOIN (asset JOIN policy USING (policy_no)) ON asset.fingerprint = $1
WHERE tip.phase = 'live'

-- name: policy_assets
-- A page of a policy's assets by supply, ties by name. Buckets skip to a large offset, so that every offset costs about
-- the same; the rest of the offset is an index-only scan.
-- NOTE: index and buckets are by -supply, so the greatest supply comes first in ascending order.
--   $1 policy  $2 limit  $3 offset
WITH asked AS MATERIALIZED (
    SELECT policy_no, asset_count FROM policy WHERE policy_id = $1
), bucket AS MATERIALIZED (
    SELECT assets, sum(assets) OVER in_order AS beyond,
           coalesce({lag}(rank) {over}, {edge}) AS rank, coalesce({lag}(name) {over}, '') AS name
    FROM asset_bucket
    WHERE policy_no = (SELECT policy_no FROM asked) AND $3::bigint >= 1000
    WINDOW in_order AS (ORDER BY rank {order}, name {order})
), start AS MATERIALIZED (
    (SELECT rank, name, $3 - (beyond - assets) AS skipped FROM bucket WHERE beyond > $3 ORDER BY beyond LIMIT 1)
    UNION ALL
    SELECT {edge}, '', $3 WHERE NOT EXISTS (SELECT FROM bucket)
), page AS (
    SELECT name, supply FROM asset
    WHERE policy_no = (SELECT policy_no FROM asked) AND first_tx_id IS NOT NULL
      AND (-supply, name) {compare} ((SELECT rank FROM start), (SELECT name FROM start))
    ORDER BY -supply {order}, name {order}
    LIMIT $2 OFFSET (SELECT skipped FROM start)
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, coalesce(asked.asset_count, 0) AS total,
       page.name, page.supply::text AS supply, asset.mint_count, asset.burn_count
FROM tip
LEFT JOIN asked ON true
LEFT JOIN page ON true
LEFT JOIN asset ON asset.policy_no = asked.policy_no AND asset.name = page.name
WHERE tip.phase = 'live'
ORDER BY -page.supply {order}, page.name {order}

-- name: holders
-- A page of the holders of an asset or of a policy by quantity, ties by {owner_no}, and one row beyond the page.
-- Buckets skip to a large offset, so that every offset costs about the same.
--   $1 limit  $2 offset  $3 policy  $4 name, for an asset only
WITH asked AS MATERIALIZED (
    SELECT {held_no} FROM {asked}
), bucket AS MATERIALIZED (
    SELECT holders, sum(holders) OVER in_order AS beyond,
           coalesce({lag}(lowest_quantity) {over}, {edge}) AS quantity,
           coalesce({lag}(lowest_{owner_no}) {over}, 0) AS owner_no
    FROM {holder}_bucket
    WHERE {held_no} = (SELECT {held_no} FROM asked) AND $2::bigint >= 1000
    WINDOW in_order AS (ORDER BY lowest_quantity {order}, lowest_{owner_no} {order})
), start AS MATERIALIZED (
    (SELECT quantity, owner_no, $2 - (beyond - holders) AS skipped FROM bucket WHERE beyond > $2
        ORDER BY beyond LIMIT 1)
    UNION ALL
    SELECT {edge}, 0, $2 WHERE NOT EXISTS (SELECT FROM bucket)
), page AS (
    SELECT {owner_no}, quantity FROM {holder}
    WHERE {held_no} = (SELECT {held_no} FROM asked)
      AND (quantity, {owner_no}) {compare} ((SELECT quantity FROM start), (SELECT owner_no FROM start))
    ORDER BY quantity {order}, {owner_no} {order}
    LIMIT $1::bigint + 1 OFFSET (SELECT skipped FROM start)
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, {exists} AS known,
       {raw} AS raw, page.quantity::text AS quantity
FROM tip
LEFT JOIN asked ON true
LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.quantity {order}, page.{owner_no} {order}

-- name: all_holders
-- All holders of an asset or of a policy in the order of `holders`, greatest first, to be read through a cursor.
--   $1 policy  $2 name, for an asset only
SELECT {raw} AS raw, page.quantity::text AS quantity
FROM {holder} page
WHERE {held_no} = (SELECT {held_no} FROM {asked})
ORDER BY page.quantity DESC, page.{owner_no} DESC

-- name: history
-- A page of a history of an asset, oldest first: a range of the primary key, at the same cost for any offset.
-- NOTE: LIMIT 1 makes two look-ups per row, as in transactions.sql.
--   $1 policy  $2 name  $3 limit  $4 offset  $5 whether the offset counts from the newest
WITH asked AS MATERIALIZED (
    SELECT asset_no, coalesce((
               SELECT {length} FROM {history} WHERE {history}.asset_no = asset.asset_no ORDER BY {last} DESC LIMIT 1
           ), 0) AS total
    FROM policy JOIN asset USING (policy_no)
    WHERE policy_id = $1 AND name = $2 AND first_tx_id IS NOT NULL
), page AS (
    SELECT *, CASE WHEN $5 THEN total - $4::bigint - $3::bigint ELSE $4 END AS lowest FROM asked
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, page.asset_no IS NOT NULL AS known,
       coalesce(page.total, 0) AS total, tx.hash AS tx_hash, block.hash AS block_hash, block.block_no, block.slot_no,
       entry.quantity::text AS quantity
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL {history}_range(page.asset_no, lowest, lowest + $3 - 1) entry ON true
LEFT JOIN LATERAL (SELECT * FROM tx WHERE tx_id = entry.tx_id LIMIT 1) tx ON true
LEFT JOIN LATERAL (SELECT * FROM block WHERE slot_no = entry.tx_id >> 16 LIMIT 1) block ON true
WHERE tip.phase = 'live'
ORDER BY seq
