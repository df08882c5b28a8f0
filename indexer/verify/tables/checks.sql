-- Comparisons of derived tables with each other, which hold at any block; each returns the first $1 differences.

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
         + (SELECT count(*) FROM holder_staged) + (SELECT count(*) FROM account_withdrawal_staged)
         + (SELECT count(*) FROM spender_staged) + (SELECT count(*) FROM label_tx_staged)
         + (SELECT count(*) FROM address_sent_staged)
         + (SELECT count(*) FROM redeemer_tx_staged) AS rows
)
SELECT what, NULL::bytea AS address, indexed, recomputed
FROM tip, staged, last, LATERAL (VALUES
    ('slot_no of tip', tip.slot_no::text, last.slot_no::text),
    ('block_no of tip', tip.block_no::text, last.block_no::text),
    ('block_hash of tip', encode(tip.block_hash, 'hex'), encode(last.hash, 'hex')),
    ('tx_count of tip', tip.tx_count::text, (SELECT count(*) FROM tx)::text),
    ('script_lovelace of tip', tip.script_lovelace::text, (
        SELECT coalesce(sum(lovelace), 0) FROM utxo JOIN address USING (address_no) WHERE script_key(raw) IS NOT NULL
    )::text),
    ('finalize_step of tip', tip.finalize_step::text, '0'),
    ('staged rows', staged.rows::text, '0')
) figures (what, indexed, recomputed)
WHERE indexed IS DISTINCT FROM recomputed
LIMIT $1

-- name: check_address
-- Every asset has exactly one number. The stake credential of a base address follows from its bytes, which are a header
-- and a hash of 28 bytes at least (CIP-19). All addresses with a payment credential but the first name the first.
-- histories.py finds addresses of history without a row.
--
-- NOTE: without an order, the planner expects to stop at the first differences, and looks up one stake credential after
-- the other. With the names of assets grouped on their own, an index is enough for them.
SELECT 'raw of address_no ' || address_no AS what, NULL::bytea AS address, length(raw) || ' bytes' AS indexed,
       'at least 29' AS recomputed
FROM address WHERE length(raw) < 29
UNION ALL
SELECT 'stake_no of', address.raw, address.stake_no::text, stake.stake_no::text
FROM address
LEFT JOIN stake ON stake.raw = CASE WHEN length(address.raw) >= 29 AND get_byte(address.raw, 0) < 64 THEN
    set_byte(substring(address.raw FROM 29 FOR 29), 0,
             CASE WHEN get_byte(address.raw, 0) < 32 THEN 224 ELSE 240 END | (get_byte(address.raw, 0) & 15)) END
WHERE address.stake_no IS DISTINCT FROM stake.stake_no
UNION ALL
SELECT 'credential_no of', address.raw, address.credential_no::text, nullif(first.address_no, address.address_no)::text
FROM address
LEFT JOIN (SELECT payment_hash(raw) AS hash, min(address_no) AS address_no FROM address GROUP BY 1) first
    ON first.hash = payment_hash(address.raw)
WHERE address.credential_no IS DISTINCT FROM nullif(first.address_no, address.address_no)
UNION ALL
SELECT format('asset_no of policy_no %s, name %s', policy_no, encode(name, 'hex')), NULL,
       string_agg(asset_no::text, ' and '), 'one number'
FROM asset
JOIN (SELECT policy_no, name FROM asset GROUP BY policy_no, name HAVING count(*) > 1) twice USING (policy_no, name)
GROUP BY policy_no, name
ORDER BY what, address
LIMIT $1

-- name: check_policy
SELECT 'asset_count of policy ' || encode(policy_id, 'hex') AS what, NULL::bytea AS address,
       asset_count::text AS indexed,
       coalesce(counted.assets, 0)::text AS recomputed
FROM policy
LEFT JOIN (SELECT policy_no, count(first_tx_id) AS assets
    FROM asset GROUP BY policy_no) counted USING (policy_no)
WHERE asset_count <> coalesce(counted.assets, 0)
ORDER BY policy_no
LIMIT $1

-- name: check_minted_asset
-- The list has exactly the minted assets, in the order of their first mints.
SELECT 'asset_no at place ' || seq || ' of minted_asset' AS what, NULL::bytea AS address, stored.asset_nos AS indexed,
       expected.asset_no::text AS recomputed
FROM (
    SELECT (chunk << 6) + place - 1 AS seq, string_agg(asset_no::text, ' and ') AS asset_nos
    FROM minted_asset CROSS JOIN unnest(asset_nos) WITH ORDINALITY AS listed (asset_no, place)
    GROUP BY 1
) stored
FULL JOIN (
    SELECT row_number() OVER (ORDER BY first_mint_tx_id, policy_id, name) - 1 AS seq, asset_no
    FROM asset LEFT JOIN policy USING (policy_no)
    WHERE first_mint_tx_id IS NOT NULL
) expected USING (seq)
WHERE stored.asset_nos IS DISTINCT FROM expected.asset_no::text
ORDER BY seq
LIMIT $1

-- name: check_assets
-- The supply, the counts and the first transactions of an asset follow from its mints and its first payment. Mints are
-- numbered 0, 1, 2 … in order of tx_id, and none is of nothing.
WITH compared AS (
    SELECT asset_no, policy_no, name, supply, mint_count, burn_count, first_tx_id, first_mint_tx_id,
           coalesce(minted, 0) AS minted, coalesce(mints, 0) AS mints, coalesce(burns, 0) AS burns, first_minted,
           least(first_paid, first_moved) AS first_seen, coalesce(in_order, true) AS in_order
    FROM asset
    FULL JOIN (SELECT asset_no, tx_id_at(entries, 0) AS first_paid FROM asset_tx WHERE chunk = 0) paid USING (asset_no)
    FULL JOIN (
        SELECT asset_no, sum(minted) AS minted,
               count(*) FILTER (WHERE minted > 0) AS mints, count(*) FILTER (WHERE minted < 0) AS burns,
               min(tx_id) AS first_moved, min(tx_id) FILTER (WHERE minted > 0) AS first_minted,
               count(*) = max(seq) + 1 AND min(seq) = 0
                   AND count(*) FILTER (WHERE tx_id <= before OR minted = 0) = 0 AS in_order
        FROM (
            SELECT asset_no, seq, tx_id, coalesce(large, quantity) AS minted,
                   lag(tx_id) OVER (PARTITION BY asset_no ORDER BY seq) AS before
            FROM mint
        ) numbered
        GROUP BY asset_no
    ) history USING (asset_no)
)
SELECT of_table, format('%s of asset %s', figures.what,
           coalesce(encode(policy.policy_id, 'hex') || '.' || encode(name, 'hex'), 'number ' || asset_no)) AS what,
       NULL::bytea AS address, indexed, recomputed
FROM compared LEFT JOIN policy USING (policy_no), LATERAL (VALUES
    ('mint', 'mint', CASE WHEN in_order THEN 'in order' ELSE 'out of order, or of nothing' END, 'in order'),
    ('asset', 'asset_no', CASE WHEN name IS NULL THEN 0 ELSE asset_no END::text, asset_no::text),
    ('asset', 'supply', supply::text, minted::text),
    ('asset', 'mint_count', mint_count::text, mints::text),
    ('asset', 'burn_count', burn_count::text, burns::text),
    ('asset', 'first_tx_id', first_tx_id::text, first_seen::text),
    ('asset', 'first_mint_tx_id', first_mint_tx_id::text, first_minted::text)
) figures (of_table, what, indexed, recomputed)
WHERE (in_order AND name IS NOT NULL AND supply = minted AND scale(supply) = 0 AND mint_count = mints
       AND burn_count = burns AND first_mint_tx_id IS NOT DISTINCT FROM first_minted
       AND first_tx_id IS NOT DISTINCT FROM first_seen) IS NOT TRUE
  AND indexed IS DISTINCT FROM recomputed
ORDER BY asset_no
LIMIT $1

-- name: check_dropped_output
-- Of the outputs that Byron left, exactly those that a later era does not have are dropped, when that era began.
WITH began AS (
    SELECT coalesce(min(slot_no), -1) AS after_byron, min(slot_no) FILTER (WHERE era <> 'shelley') AS after_shelley
        FROM era_start
), left_in_byron AS (
    SELECT tx_id, output_index, lovelace, address_no, NULL::bigint AS slot_no FROM began JOIN utxo
        ON tx_id < after_byron << 16
    UNION ALL
    SELECT tx_id, output_index, lovelace, address_no, slot_no FROM dropped_output
), compared AS (
    SELECT tx_id, output_index, raw, slot_no,
           CASE WHEN tx_id >= after_byron << 16 OR NOT is_byron_address(raw) THEN NULL
                WHEN lovelace = 0 THEN after_byron
                WHEN is_redeem_address(raw) THEN after_shelley END AS expected
    FROM began, left_in_byron LEFT JOIN address USING (address_no)
)
SELECT format('slot that dropped output %s of tx_id %s, of', output_index, tx_id) AS what, raw AS address,
       slot_no::text AS indexed, expected::text AS recomputed
FROM compared
WHERE slot_no IS DISTINCT FROM expected
ORDER BY tx_id, output_index
LIMIT $1

-- name: check_buckets
-- Of the buckets of long lists (store/buckets.sql), as they are in their table and as they should be. Sparse ones may
-- lack the row of a bucket while nothing is in it.
SELECT {place} AS what, NULL::bytea AS address, {b_says} AS indexed, {counted_says} AS recomputed
FROM {bucket} b FULL JOIN ({counted}) counted USING ({key}, {rank}, {tie})
WHERE ({b_sums}) IS DISTINCT FROM ({counted_sums})
ORDER BY {key}, {rank}, {tie}
LIMIT $1

-- name: check_utxo_asset
-- Of the same lists, where they are of outputs: {asset} is the table of the assets of long ones, which the CTE selects.
WITH list AS (
    {long_lists}
), held AS (
    SELECT {owner_no}, asset_no, tx_id, output_index, true AS found
    FROM utxo JOIN list ON list_no = {owner_no} CROSS JOIN unnest(asset_nos) AS asset_no
)
SELECT format('{asset} of {owner_no} %s, asset_no %s, output %s of tx_id %s', {owner_no}, asset_no, output_index,
       tx_id) AS what,
       NULL::bytea AS address, CASE WHEN a.found THEN 'a row' END AS indexed,
       CASE WHEN held.found THEN 'a row' END AS recomputed
FROM (SELECT *, true AS found FROM {asset}) a FULL JOIN held USING ({owner_no}, asset_no, tx_id, output_index)
WHERE a.found IS DISTINCT FROM held.found
ORDER BY {owner_no}, asset_no, tx_id, output_index
LIMIT $1
