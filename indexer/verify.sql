-- What verify compares. Parts of history are added up in temporary tables; each check returns the first $1 differences.

-- name: parts
-- Ranges of about $1 transactions, cut between blocks.
SELECT min(slot_no) << 16, (max(slot_no) + 1) << 16, sum(tx_count)::bigint
FROM (SELECT slot_no, tx_count, (sum(tx_count) OVER (ORDER BY slot_no) - 1) / $1::bigint AS part FROM block) b
WHERE tx_count > 0
GROUP BY part
ORDER BY part

-- name: transactions
-- The packed transactions from tx_id $1 up to $2, in order.
SELECT tx_id, outputs, inputs, extra FROM tx WHERE tx_id >= $1 AND tx_id < $2 ORDER BY tx_id

-- name: genesis_outputs
SELECT address, lovelace FROM genesis_output

-- name: datums
SELECT hash, body FROM datum ORDER BY tx_id, hash

-- name: make_address_part
CREATE TEMPORARY TABLE address_part (raw bytea, txs bigint, tx_ids bigint)

-- name: make_stake_part
CREATE TEMPORARY TABLE stake_part (raw bytea, lovelace bigint)

-- name: make_holder_part
CREATE TEMPORARY TABLE holder_part (asset bytea, raw bytea, quantity bigint, large numeric)

-- name: make_asset_part
CREATE TEMPORARY TABLE asset_part (
    asset bytea, txs bigint, tx_ids bigint, weighted bigint, supply bigint, supply_large numeric, mints bigint, burns bigint,
    mint_tx_ids bigint, mint_weighted bigint, named bigint, named_tx_ids bigint, first_tx_id bigint, first_mint_tx_id bigint
)

-- name: make_reference_part
CREATE TEMPORARY TABLE reference_part (asset bytea, tx_id bigint, output_index integer)

-- name: make_spent_part
CREATE TEMPORARY TABLE spent_part (tx_hash bytea, output_index bigint, tx_id bigint)

-- name: make_recounted_address
CREATE TEMPORARY TABLE recounted_address (address_id integer, raw bytea, txs bigint, tx_ids numeric)

-- name: make_recounted_stake
CREATE TEMPORARY TABLE recounted_stake (stake_id integer, raw bytea, lovelace numeric)

-- name: make_recounted_asset
CREATE TEMPORARY TABLE recounted_asset (
    asset_id integer, policy_id integer, asset bytea, txs bigint, tx_ids numeric, weighted numeric, supply numeric,
    mints bigint, burns bigint, mint_tx_ids numeric, mint_weighted numeric, named bigint, named_tx_ids numeric,
    first_tx_id bigint, first_mint_tx_id bigint
)

-- name: make_recounted_holder
CREATE TEMPORARY TABLE recounted_holder (asset_id integer, policy_id integer, address_id integer, asset bytea, raw bytea, quantity numeric)

-- name: sum_addresses
INSERT INTO recounted_address
SELECT address.address_id, raw, txs, tx_ids
FROM (SELECT raw, sum(txs) AS txs, sum(tx_ids) AS tx_ids FROM address_part GROUP BY raw) part
LEFT JOIN address USING (raw)

-- name: sum_stakes
INSERT INTO recounted_stake
SELECT stake.stake_id, raw, lovelace
FROM (SELECT raw, sum(lovelace) AS lovelace FROM stake_part GROUP BY raw) part LEFT JOIN stake USING (raw)

-- name: sum_assets
-- Weighted sums are taken modulo 2^61 - 1, as in recount.py.
INSERT INTO recounted_asset
SELECT asset.asset_id, asset.policy_id, part.asset, sum(txs), sum(tx_ids), mod(sum(weighted), 2305843009213693951),
       coalesce(sum(part.supply), 0) + coalesce(sum(supply_large), 0), sum(mints), sum(burns),
       sum(mint_tx_ids), mod(sum(mint_weighted), 2305843009213693951), sum(named), sum(named_tx_ids),
       min(part.first_tx_id), min(part.first_mint_tx_id)
FROM asset_part part
LEFT JOIN policy ON policy.hash = substring(part.asset FOR 28)
LEFT JOIN asset ON asset.policy_id = policy.policy_id AND asset.name = substring(part.asset FROM 29)
GROUP BY asset.asset_id, asset.policy_id, part.asset

-- name: sum_holders
INSERT INTO recounted_holder
SELECT recounted_asset.asset_id, recounted_asset.policy_id, recounted_address.address_id, asset, raw, quantity
FROM (
    SELECT asset, raw, coalesce(sum(quantity), 0) + coalesce(sum(large), 0) AS quantity FROM holder_part GROUP BY asset, raw
) part
LEFT JOIN recounted_asset USING (asset)
LEFT JOIN recounted_address USING (raw)
WHERE quantity <> 0

-- name: check_tip
WITH last AS (
    SELECT * FROM (
        (SELECT slot_no, block_no, hash, 1 AS place FROM block ORDER BY slot_no DESC LIMIT 1)
        UNION ALL
        (SELECT slot_no, block_no, hash, 0 FROM epoch_boundary_block ORDER BY slot_no DESC LIMIT 1)
    ) ends
    ORDER BY slot_no DESC, place DESC LIMIT 1
), staged AS (
    SELECT (SELECT count(*) FROM address_tx_staged) + (SELECT count(*) FROM asset_tx_staged)
         + (SELECT count(*) FROM mint_staged) + (SELECT count(*) FROM balance_staged)
         + (SELECT count(*) FROM holder_staged) AS rows
)
SELECT what, NULL::bytea, indexed, recomputed
FROM tip, staged, last, LATERAL (VALUES
    ('slot_no of tip', tip.slot_no::text, last.slot_no::text),
    ('block_no of tip', tip.block_no::text, last.block_no::text),
    ('block_hash of tip', encode(tip.block_hash, 'hex'), encode(last.hash, 'hex')),
    ('tx_count of tip', tip.tx_count::text, (SELECT count(*) FROM tx)::text),
    ('staged rows', staged.rows::text, '0')
) figures (what, indexed, recomputed)
WHERE indexed IS DISTINCT FROM recomputed
LIMIT $1

-- name: check_block
SELECT figures.what || ' of block ' || slot_no, NULL::bytea, indexed, recomputed
FROM (
    SELECT slot_no, block.tx_count, counted.txs, block.block_no, lag(block.block_no) OVER (ORDER BY slot_no) AS before
    FROM block FULL JOIN (SELECT tx_id >> 16 AS slot_no, count(*) AS txs FROM tx GROUP BY 1) counted USING (slot_no)
) b, LATERAL (VALUES
    ('tx_count', tx_count::text, coalesce(txs, 0)::text),
    ('block_no', block_no::text, coalesce(before + 1, block_no)::text)
) figures (what, indexed, recomputed)
WHERE indexed IS DISTINCT FROM recomputed
ORDER BY slot_no
LIMIT $1

-- name: check_address
-- Every address of history has a number, and one alone; so has whatever else is numbered. What two numbers share is
-- right in sum, and no checksum tells.
SELECT 'address_id of', raw, string_agg(address_id::text, ' and '), 'one number'
FROM address GROUP BY raw HAVING count(*) > 1
UNION ALL
SELECT 'address_id of', raw, NULL, 'one number' FROM recounted_address WHERE address_id IS NULL
UNION ALL
SELECT 'stake_id of ' || encode(raw, 'hex'), NULL, string_agg(stake_id::text, ' and '), 'one number'
FROM stake GROUP BY raw HAVING count(*) > 1
UNION ALL
SELECT 'pool_id of ' || encode(hash, 'hex'), NULL, string_agg(pool_id::text, ' and '), 'one number'
FROM pool GROUP BY hash HAVING count(*) > 1
UNION ALL
SELECT 'policy_id of ' || encode(hash, 'hex'), NULL, string_agg(policy_id::text, ' and '), 'one number'
FROM policy GROUP BY hash HAVING count(*) > 1
UNION ALL
SELECT format('asset_id of policy_id %s, name %s', policy_id, encode(name, 'hex')), NULL, string_agg(asset_id::text, ' and '), 'one number'
FROM asset GROUP BY policy_id, name HAVING count(*) > 1
LIMIT $1

-- name: check_policy
SELECT 'asset_count of policy ' || encode(hash, 'hex'), NULL::bytea, asset_count::text, coalesce(counted.assets, 0)::text
FROM policy
LEFT JOIN (SELECT policy_id, count(first_tx_id) AS assets FROM recounted_asset GROUP BY policy_id) counted USING (policy_id)
WHERE asset_count <> coalesce(counted.assets, 0)
ORDER BY policy_id
LIMIT $1

-- name: check_asset
SELECT figures.what || ' of asset ' || coalesce(encode(policy.hash, 'hex') || '.' || encode(a.name, 'hex'), encode(r.asset, 'hex')),
       NULL::bytea, indexed, recomputed
FROM asset a
FULL JOIN recounted_asset r USING (asset_id)
LEFT JOIN policy ON policy.policy_id = a.policy_id,
LATERAL (VALUES
    ('asset_id', coalesce(a.asset_id, 0)::text, coalesce(r.asset_id, a.asset_id)::text),
    ('supply', a.supply::text, coalesce(r.supply, 0)::text),
    ('mint_count', a.mint_count::text, coalesce(r.mints, 0)::text),
    ('burn_count', a.burn_count::text, coalesce(r.burns, 0)::text),
    ('first_tx_id', a.first_tx_id::text, r.first_tx_id::text),
    ('first_mint_tx_id', a.first_mint_tx_id::text, r.first_mint_tx_id::text)
) figures (what, indexed, recomputed)
WHERE indexed IS DISTINCT FROM recomputed
ORDER BY asset_id
LIMIT $1

-- name: check_address_tx
WITH found AS (
    SELECT address_id, count(*) AS txs, sum(tx_id) AS tx_ids, count(*) FILTER (WHERE seq <> place OR tx_id <= before) AS wrong
    FROM (
        SELECT address_id, seq, tx_id, row_number() OVER in_order - 1 AS place, lag(tx_id) OVER in_order AS before
        FROM address_tx WINDOW in_order AS (PARTITION BY address_id ORDER BY seq)
    ) numbered
    GROUP BY address_id
)
SELECT 'address_tx of', coalesce(address.raw, r.raw),
       format('%s rows, %s out of order, tx_ids of %s in all', coalesce(found.txs, 0), coalesce(wrong, 0), coalesce(found.tx_ids, 0)),
       format('%s rows, 0 out of order, tx_ids of %s in all', coalesce(r.txs, 0), coalesce(r.tx_ids, 0))
FROM found
FULL JOIN recounted_address r USING (address_id)
LEFT JOIN address USING (address_id)
WHERE coalesce(found.txs, 0) <> coalesce(r.txs, 0) OR coalesce(found.tx_ids, 0) <> coalesce(r.tx_ids, 0) OR wrong > 0
ORDER BY address_id
LIMIT $1

-- name: check_asset_tx
WITH found AS (
    SELECT asset_id, count(*) AS txs, sum(tx_id) AS tx_ids, count(*) FILTER (WHERE seq <> place OR tx_id <= before) AS wrong,
           mod(mod(sum(tx_id * coalesce(large, quantity)), 2305843009213693951) + 2305843009213693951, 2305843009213693951) AS weighted
    FROM (
        SELECT asset_id, seq, tx_id, quantity, large,
               row_number() OVER in_order - 1 AS place, lag(tx_id) OVER in_order AS before
        FROM asset_tx WINDOW in_order AS (PARTITION BY asset_id ORDER BY seq)
    ) numbered
    GROUP BY asset_id
), compared AS (
    SELECT asset_id,
           format('%s rows, %s out of order, tx_ids of %s in all, weighted by quantity %s',
                  coalesce(found.txs, 0), coalesce(wrong, 0), coalesce(found.tx_ids, 0), coalesce(found.weighted, 0)) AS indexed,
           format('%s rows, 0 out of order, tx_ids of %s in all, weighted by quantity %s',
                  coalesce(r.txs, 0), coalesce(r.tx_ids, 0), coalesce(r.weighted, 0)) AS recomputed
    FROM found FULL JOIN recounted_asset r USING (asset_id)
)
SELECT 'asset_tx of asset ' || coalesce(encode(policy.hash, 'hex') || '.' || encode(asset.name, 'hex'), 'number ' || asset_id),
       NULL::bytea, indexed, recomputed
FROM compared LEFT JOIN asset USING (asset_id) LEFT JOIN policy USING (policy_id)
WHERE indexed <> recomputed
ORDER BY asset_id
LIMIT $1

-- name: check_mint
WITH found AS (
    SELECT asset_id, count(*) AS txs, sum(tx_id) AS tx_ids, count(*) FILTER (WHERE seq <> place OR tx_id <= before) AS wrong,
           mod(mod(sum(tx_id * coalesce(large, quantity)), 2305843009213693951) + 2305843009213693951, 2305843009213693951) AS weighted,
           count(*) FILTER (WHERE named) AS named, coalesce(sum(tx_id) FILTER (WHERE named), 0) AS named_tx_ids
    FROM (
        SELECT asset_id, seq, tx_id, quantity, large, named,
               row_number() OVER in_order - 1 AS place, lag(tx_id) OVER in_order AS before
        FROM mint WINDOW in_order AS (PARTITION BY asset_id ORDER BY seq)
    ) numbered
    GROUP BY asset_id
), compared AS (
    SELECT asset_id,
           format('%s rows, %s out of order, tx_ids of %s in all, weighted by quantity %s, %s named of tx_ids %s',
                  coalesce(found.txs, 0), coalesce(wrong, 0), coalesce(found.tx_ids, 0), coalesce(found.weighted, 0), coalesce(found.named, 0), coalesce(found.named_tx_ids, 0)) AS indexed,
           format('%s rows, 0 out of order, tx_ids of %s in all, weighted by quantity %s, %s named of tx_ids %s',
                  coalesce(r.mints + r.burns, 0), coalesce(r.mint_tx_ids, 0), coalesce(r.mint_weighted, 0), coalesce(r.named, 0), coalesce(r.named_tx_ids, 0)) AS recomputed
    FROM found FULL JOIN recounted_asset r USING (asset_id)
)
SELECT 'mint of asset ' || coalesce(encode(policy.hash, 'hex') || '.' || encode(asset.name, 'hex'), 'number ' || asset_id),
       NULL::bytea, indexed, recomputed
FROM compared LEFT JOIN asset USING (asset_id) LEFT JOIN policy USING (policy_id)
WHERE indexed <> recomputed
ORDER BY asset_id
LIMIT $1

-- name: check_holder
SELECT 'asset ' || coalesce(encode(policy.hash, 'hex') || '.' || encode(asset.name, 'hex'), 'number ' || asset_id) || ' held by',
       coalesce(address.raw, r.raw), h.quantity::text, r.quantity::text
FROM holder h
FULL JOIN recounted_holder r USING (asset_id, address_id)
LEFT JOIN asset USING (asset_id)
LEFT JOIN policy ON policy.policy_id = asset.policy_id
LEFT JOIN address USING (address_id)
WHERE h.quantity IS DISTINCT FROM r.quantity
ORDER BY asset_id, address_id
LIMIT $1

-- name: check_policy_holder
SELECT 'policy ' || coalesce(encode(policy.hash, 'hex'), 'number ' || policy_id) || ' held by',
       address.raw, h.quantity::text, r.quantity::text
FROM policy_holder h
FULL JOIN (
    SELECT policy_id, address_id, sum(quantity) AS quantity FROM recounted_holder GROUP BY policy_id, address_id
) r USING (policy_id, address_id)
LEFT JOIN policy USING (policy_id)
LEFT JOIN address USING (address_id)
WHERE h.quantity IS DISTINCT FROM r.quantity
ORDER BY policy_id, address_id
LIMIT $1

-- name: check_asset_bucket
WITH list AS (
    SELECT policy_id FROM asset WHERE first_tx_id IS NOT NULL AND opens_bucket(asset_id) GROUP BY policy_id HAVING count(*) >= 4
), numbered AS (
    SELECT policy_id, -supply AS rank, name, count(*) FILTER (WHERE opens_bucket(asset_id)) OVER (
        PARTITION BY policy_id ORDER BY -supply, name
    ) AS bucket
    FROM asset JOIN list USING (policy_id)
    WHERE first_tx_id IS NOT NULL
), counted AS (
    SELECT policy_id, CASE WHEN bucket = 0 THEN '-Infinity' ELSE min(rank) END AS rank,
           CASE WHEN bucket = 0 THEN '' ELSE (array_agg(name ORDER BY rank, name))[1] END AS name, count(*)::integer AS assets
    FROM numbered GROUP BY policy_id, bucket
)
SELECT format('asset_bucket of policy_id %s from supply %s, name %s', policy_id, -rank, encode(name, 'hex')), NULL::bytea,
       b.assets::text, counted.assets::text
FROM asset_bucket b FULL JOIN counted USING (policy_id, rank, name)
WHERE b.assets IS DISTINCT FROM counted.assets AND (b.assets <> 0 OR counted.assets <> 0 OR rank > '-Infinity')
ORDER BY policy_id, rank, name
LIMIT $1

-- name: check_holder_bucket
WITH list AS (
    SELECT asset_id FROM holder WHERE opens_bucket(address_id) GROUP BY asset_id HAVING count(*) >= 4
), numbered AS (
    SELECT asset_id, quantity, address_id, count(*) FILTER (WHERE opens_bucket(address_id)) OVER (
        PARTITION BY asset_id ORDER BY quantity, address_id
    ) AS bucket
    FROM holder JOIN list USING (asset_id)
), counted AS (
    SELECT asset_id, CASE WHEN bucket = 0 THEN 0 ELSE min(quantity) END AS lowest_quantity,
           CASE WHEN bucket = 0 THEN 0 ELSE (array_agg(address_id ORDER BY quantity, address_id))[1] END AS lowest_address,
           count(*)::integer AS holders
    FROM numbered GROUP BY asset_id, bucket
)
SELECT format('holder_bucket of asset_id %s from quantity %s, address_id %s', asset_id, lowest_quantity, lowest_address), NULL::bytea,
       b.holders::text, counted.holders::text
FROM holder_bucket b FULL JOIN counted USING (asset_id, lowest_quantity, lowest_address)
WHERE b.holders IS DISTINCT FROM counted.holders AND (b.holders <> 0 OR counted.holders <> 0 OR lowest_address <> 0)
ORDER BY asset_id, lowest_quantity, lowest_address
LIMIT $1

-- name: check_policy_holder_bucket
WITH list AS (
    SELECT policy_id FROM policy_holder WHERE opens_bucket(address_id) GROUP BY policy_id HAVING count(*) >= 4
), numbered AS (
    SELECT policy_id, quantity, address_id, count(*) FILTER (WHERE opens_bucket(address_id)) OVER (
        PARTITION BY policy_id ORDER BY quantity, address_id
    ) AS bucket
    FROM policy_holder JOIN list USING (policy_id)
), counted AS (
    SELECT policy_id, CASE WHEN bucket = 0 THEN 0 ELSE min(quantity) END AS lowest_quantity,
           CASE WHEN bucket = 0 THEN 0 ELSE (array_agg(address_id ORDER BY quantity, address_id))[1] END AS lowest_address,
           count(*)::integer AS holders
    FROM numbered GROUP BY policy_id, bucket
)
SELECT format('policy_holder_bucket of policy_id %s from quantity %s, address_id %s', policy_id, lowest_quantity, lowest_address), NULL::bytea,
       b.holders::text, counted.holders::text
FROM policy_holder_bucket b FULL JOIN counted USING (policy_id, lowest_quantity, lowest_address)
WHERE b.holders IS DISTINCT FROM counted.holders AND (b.holders <> 0 OR counted.holders <> 0 OR lowest_address <> 0)
ORDER BY policy_id, lowest_quantity, lowest_address
LIMIT $1

-- name: check_stake
SELECT 'balance of stake credential ' || encode(coalesce(stake.raw, r.raw), 'hex'), NULL::bytea,
       stake.balance::text, coalesce(r.lovelace, 0)::text
FROM stake FULL JOIN recounted_stake r USING (stake_id)
WHERE coalesce(stake.balance, 0) <> coalesce(r.lovelace, 0)
ORDER BY stake_id
LIMIT $1

-- name: check_reference_output
WITH spent AS (
    SELECT DISTINCT tx.tx_id AS made, part.output_index, part.tx_id AS spent_tx_id
    FROM spent_part part JOIN tx ON tx.hash = part.tx_hash
), recounted AS (
    SELECT recounted_asset.asset_id, asset, part.tx_id, part.output_index, coalesce(spent.spent_tx_id, 0) AS spent_tx_id
    FROM reference_part part
    LEFT JOIN recounted_asset USING (asset)
    LEFT JOIN spent ON spent.made = part.tx_id AND spent.output_index = part.output_index
)
SELECT format('spending of reference token number %s in output %s of tx_id %s', asset_id, output_index, tx_id), NULL::bytea,
       coalesce(r.spent_tx_id, 0)::text, recounted.spent_tx_id::text
FROM (SELECT asset_id, tx_id, output_index, coalesce(spent_tx_id, 0) AS spent_tx_id, true AS found FROM reference_output) r
FULL JOIN recounted USING (asset_id, tx_id, output_index)
WHERE r.spent_tx_id IS DISTINCT FROM recounted.spent_tx_id
ORDER BY tx_id, output_index, asset_id
LIMIT $1
