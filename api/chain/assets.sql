-- Assets. Each statement is one snapshot; it has no row where the network is not served.

-- An asset $2 of a policy $1; nulls where there is none. What describes it: the metadata of the last transaction that minted
-- and named it (CIP-25), and the datum beside the reference token $3 now (CIP-68): of the last output, should there be several.
-- name: asset
SELECT asset.supply::text, asset.mint_count, asset.burn_count, asset.first_mint_tx_id, first.hash,
       naming.extra, coalesce(held.datum, datum.body)
FROM tip
LEFT JOIN (policy JOIN asset USING (policy_id))
       ON policy.hash = $1 AND asset.name = $2 AND asset.first_tx_id IS NOT NULL
LEFT JOIN tx first ON first.tx_id = asset.first_mint_tx_id
LEFT JOIN LATERAL (
    SELECT tx.extra FROM mint JOIN tx USING (tx_id)
    WHERE mint.asset_id = asset.asset_id AND named ORDER BY seq DESC LIMIT 1
) naming ON true
LEFT JOIN LATERAL (
    SELECT r.datum, r.datum_hash
    FROM asset reference JOIN reference_output r USING (asset_id)
    WHERE reference.policy_id = asset.policy_id AND reference.name = $3 AND r.spent_tx_id IS NULL
    ORDER BY r.tx_id DESC, r.output_index DESC LIMIT 1
) held ON true
LEFT JOIN datum ON datum.hash = held.datum_hash
WHERE tip.phase = 'live'

-- A page of a policy's assets, greatest supply first, ties by name. Buckets lead to an offset that is not small, so that
-- every one costs about the same, and what is skipped then is a walk along an index that has all of it. A single row with
-- nulls where the page is empty.   $1 policy  $2 limit  $3 offset
-- name: policy_assets_desc
WITH asked AS MATERIALIZED (
    SELECT policy_id, asset_count FROM policy WHERE hash = $1
), bucket AS MATERIALIZED (
    SELECT assets, sum(assets) OVER in_order AS beyond, rank, name
    FROM asset_bucket
    WHERE policy_id = (SELECT policy_id FROM asked) AND $3::bigint >= 1000
    WINDOW in_order AS (ORDER BY rank, name)
), start AS MATERIALIZED (
    (SELECT rank, name, $3 - (beyond - assets) AS skipped FROM bucket WHERE beyond > $3 ORDER BY beyond LIMIT 1)
    UNION ALL
    SELECT '-Infinity', '', $3 WHERE NOT EXISTS (SELECT FROM bucket)
), page AS (
    SELECT name, supply FROM asset
    WHERE policy_id = (SELECT policy_id FROM asked) AND first_tx_id IS NOT NULL
      AND (-supply, name) >= ((SELECT rank FROM start), (SELECT name FROM start))
    ORDER BY -supply, name
    LIMIT $2 OFFSET (SELECT skipped FROM start)
)
SELECT tip.slot_no, tip.block_hash, coalesce(asked.asset_count, 0),
       page.name, page.supply::text, asset.mint_count, asset.burn_count
FROM tip
LEFT JOIN asked ON true
LEFT JOIN page ON true
LEFT JOIN asset ON asset.policy_id = asked.policy_id AND asset.name = page.name
WHERE tip.phase = 'live'
ORDER BY -page.supply, page.name

-- The same from the other end: a bucket ends where the one after it begins.
-- name: policy_assets_asc
WITH asked AS MATERIALIZED (
    SELECT policy_id, asset_count FROM policy WHERE hash = $1
), bucket AS MATERIALIZED (
    SELECT assets, sum(assets) OVER in_order AS beyond,
           coalesce(lag(rank) OVER in_order, 'Infinity') AS rank, coalesce(lag(name) OVER in_order, '') AS name
    FROM asset_bucket
    WHERE policy_id = (SELECT policy_id FROM asked) AND $3::bigint >= 1000
    WINDOW in_order AS (ORDER BY rank DESC, name DESC)
), start AS MATERIALIZED (
    (SELECT rank, name, $3 - (beyond - assets) AS skipped FROM bucket WHERE beyond > $3 ORDER BY beyond LIMIT 1)
    UNION ALL
    SELECT 'Infinity', '', $3 WHERE NOT EXISTS (SELECT FROM bucket)
), page AS (
    SELECT name, supply FROM asset
    WHERE policy_id = (SELECT policy_id FROM asked) AND first_tx_id IS NOT NULL
      AND (-supply, name) < ((SELECT rank FROM start), (SELECT name FROM start))
    ORDER BY -supply DESC, name DESC
    LIMIT $2 OFFSET (SELECT skipped FROM start)
)
SELECT tip.slot_no, tip.block_hash, coalesce(asked.asset_count, 0),
       page.name, page.supply::text, asset.mint_count, asset.burn_count
FROM tip
LEFT JOIN asked ON true
LEFT JOIN page ON true
LEFT JOIN asset ON asset.policy_id = asked.policy_id AND asset.name = page.name
WHERE tip.phase = 'live'
ORDER BY -page.supply DESC, page.name DESC

-- A page of an asset's holders, greatest first, ties by address_id, and one row beyond it. Buckets lead to an offset that is
-- not small, so that every one costs about the same. A single row with nulls where the page is empty.
--   $1 policy  $2 name  $3 limit  $4 offset
-- name: holders_desc
WITH asked AS MATERIALIZED (
    SELECT asset_id FROM policy JOIN asset USING (policy_id)
    WHERE hash = $1 AND name = $2 AND first_tx_id IS NOT NULL
), bucket AS MATERIALIZED (
    -- Where the bucket ends: at the one before, from this end.
    SELECT holders, sum(holders) OVER in_order AS beyond,
           coalesce(lag(lowest_quantity) OVER in_order, 'Infinity') AS quantity,
           coalesce(lag(lowest_address) OVER in_order, 0) AS address_id
    FROM holder_bucket
    WHERE asset_id = (SELECT asset_id FROM asked) AND $4::bigint >= 1000
    WINDOW in_order AS (ORDER BY lowest_quantity DESC, lowest_address DESC)
), start AS MATERIALIZED (
    (SELECT quantity, address_id, $4 - (beyond - holders) AS skipped FROM bucket WHERE beyond > $4 ORDER BY beyond LIMIT 1)
    UNION ALL
    SELECT 'Infinity', 0, $4 WHERE NOT EXISTS (SELECT FROM bucket)
), page AS (
    SELECT address_id, quantity FROM holder
    WHERE asset_id = (SELECT asset_id FROM asked)
      AND (quantity, address_id) < ((SELECT quantity FROM start), (SELECT address_id FROM start))
    ORDER BY quantity DESC, address_id DESC
    LIMIT $3::bigint + 1 OFFSET (SELECT skipped FROM start)
)
SELECT tip.slot_no, tip.block_hash, asked.asset_id IS NOT NULL,
       (SELECT raw FROM address WHERE address.address_id = page.address_id), page.quantity::text
FROM tip
LEFT JOIN asked ON true
LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.quantity DESC, page.address_id DESC

-- The same from the other end.
-- name: holders_asc
WITH asked AS MATERIALIZED (
    SELECT asset_id FROM policy JOIN asset USING (policy_id)
    WHERE hash = $1 AND name = $2 AND first_tx_id IS NOT NULL
), bucket AS MATERIALIZED (
    SELECT holders, sum(holders) OVER in_order AS beyond, lowest_quantity AS quantity, lowest_address AS address_id
    FROM holder_bucket
    WHERE asset_id = (SELECT asset_id FROM asked) AND $4::bigint >= 1000
    WINDOW in_order AS (ORDER BY lowest_quantity, lowest_address)
), start AS MATERIALIZED (
    (SELECT quantity, address_id, $4 - (beyond - holders) AS skipped FROM bucket WHERE beyond > $4 ORDER BY beyond LIMIT 1)
    UNION ALL
    SELECT 0, 0, $4 WHERE NOT EXISTS (SELECT FROM bucket)
), page AS (
    SELECT address_id, quantity FROM holder
    WHERE asset_id = (SELECT asset_id FROM asked)
      AND (quantity, address_id) >= ((SELECT quantity FROM start), (SELECT address_id FROM start))
    ORDER BY quantity, address_id
    LIMIT $3::bigint + 1 OFFSET (SELECT skipped FROM start)
)
SELECT tip.slot_no, tip.block_hash, asked.asset_id IS NOT NULL,
       (SELECT raw FROM address WHERE address.address_id = page.address_id), page.quantity::text
FROM tip
LEFT JOIN asked ON true
LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.quantity, page.address_id

-- The same for a policy; one never seen has no holders.   $1 policy  $2 limit  $3 offset
-- name: policy_holders_desc
WITH asked AS MATERIALIZED (
    SELECT policy_id FROM policy WHERE hash = $1
), bucket AS MATERIALIZED (
    -- Where the bucket ends: at the one before, from this end.
    SELECT holders, sum(holders) OVER in_order AS beyond,
           coalesce(lag(lowest_quantity) OVER in_order, 'Infinity') AS quantity,
           coalesce(lag(lowest_address) OVER in_order, 0) AS address_id
    FROM policy_holder_bucket
    WHERE policy_id = (SELECT policy_id FROM asked) AND $3::bigint >= 1000
    WINDOW in_order AS (ORDER BY lowest_quantity DESC, lowest_address DESC)
), start AS MATERIALIZED (
    (SELECT quantity, address_id, $3 - (beyond - holders) AS skipped FROM bucket WHERE beyond > $3 ORDER BY beyond LIMIT 1)
    UNION ALL
    SELECT 'Infinity', 0, $3 WHERE NOT EXISTS (SELECT FROM bucket)
), page AS (
    SELECT address_id, quantity FROM policy_holder
    WHERE policy_id = (SELECT policy_id FROM asked)
      AND (quantity, address_id) < ((SELECT quantity FROM start), (SELECT address_id FROM start))
    ORDER BY quantity DESC, address_id DESC
    LIMIT $2::bigint + 1 OFFSET (SELECT skipped FROM start)
)
SELECT tip.slot_no, tip.block_hash, true,
       (SELECT raw FROM address WHERE address.address_id = page.address_id), page.quantity::text
FROM tip
LEFT JOIN asked ON true
LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.quantity DESC, page.address_id DESC

-- The same from the other end.
-- name: policy_holders_asc
WITH asked AS MATERIALIZED (
    SELECT policy_id FROM policy WHERE hash = $1
), bucket AS MATERIALIZED (
    SELECT holders, sum(holders) OVER in_order AS beyond, lowest_quantity AS quantity, lowest_address AS address_id
    FROM policy_holder_bucket
    WHERE policy_id = (SELECT policy_id FROM asked) AND $3::bigint >= 1000
    WINDOW in_order AS (ORDER BY lowest_quantity, lowest_address)
), start AS MATERIALIZED (
    (SELECT quantity, address_id, $3 - (beyond - holders) AS skipped FROM bucket WHERE beyond > $3 ORDER BY beyond LIMIT 1)
    UNION ALL
    SELECT 0, 0, $3 WHERE NOT EXISTS (SELECT FROM bucket)
), page AS (
    SELECT address_id, quantity FROM policy_holder
    WHERE policy_id = (SELECT policy_id FROM asked)
      AND (quantity, address_id) >= ((SELECT quantity FROM start), (SELECT address_id FROM start))
    ORDER BY quantity, address_id
    LIMIT $2::bigint + 1 OFFSET (SELECT skipped FROM start)
)
SELECT tip.slot_no, tip.block_hash, true,
       (SELECT raw FROM address WHERE address.address_id = page.address_id), page.quantity::text
FROM tip
LEFT JOIN asked ON true
LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.quantity, page.address_id

-- A page of the transactions with an asset in their outputs, oldest first: a range of the primary key, at the same cost
-- anywhere. A single row with nulls where the page is empty.
--   $1 policy  $2 name  $3 limit  $4 offset  $5 whether the page is counted from the newest
-- name: transactions
WITH asked AS MATERIALIZED (
    SELECT asset_id, coalesce((SELECT max(seq) + 1 FROM asset_tx WHERE asset_tx.asset_id = asset.asset_id), 0) AS total
    FROM policy JOIN asset USING (policy_id)
    WHERE hash = $1 AND name = $2 AND first_tx_id IS NOT NULL
), page AS (
    SELECT *, CASE WHEN $5 THEN total - $4::bigint - $3::bigint ELSE $4 END AS lowest FROM asked
)
SELECT tip.slot_no, tip.block_hash, page.asset_id IS NOT NULL, coalesce(page.total, 0),
       tx.hash, block.hash, block.block_no, block.slot_no, coalesce(asset_tx.quantity::text, asset_tx.large::text)
FROM tip
LEFT JOIN page ON true
LEFT JOIN (asset_tx JOIN tx USING (tx_id) JOIN block ON block.slot_no = tx_id >> 16)
       ON asset_tx.asset_id = page.asset_id AND seq BETWEEN lowest AND lowest + $3 - 1
WHERE tip.phase = 'live'
ORDER BY seq

-- The same of what was minted and burned.
-- name: mints
WITH asked AS MATERIALIZED (
    SELECT asset_id, coalesce((SELECT max(seq) + 1 FROM mint WHERE mint.asset_id = asset.asset_id), 0) AS total
    FROM policy JOIN asset USING (policy_id)
    WHERE hash = $1 AND name = $2 AND first_tx_id IS NOT NULL
), page AS (
    SELECT *, CASE WHEN $5 THEN total - $4::bigint - $3::bigint ELSE $4 END AS lowest FROM asked
)
SELECT tip.slot_no, tip.block_hash, page.asset_id IS NOT NULL, coalesce(page.total, 0),
       tx.hash, block.hash, block.block_no, block.slot_no, coalesce(mint.quantity::text, mint.large::text)
FROM tip
LEFT JOIN page ON true
LEFT JOIN (mint JOIN tx USING (tx_id) JOIN block ON block.slot_no = tx_id >> 16)
       ON mint.asset_id = page.asset_id AND seq BETWEEN lowest AND lowest + $3 - 1
WHERE tip.phase = 'live'
ORDER BY seq
