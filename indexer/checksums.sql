-- The same sums as in checksums.py over the derived tables, in exact integers, each as text; and how many rows of
-- tables that follow from other derived tables are unlike them. Null where a row refers to nothing, a quantity is none,
-- or a history is not numbered 0, 1, 2 … in order of tx_id.

-- name: make_key_of
-- A number that stands for a byte string.
CREATE OR REPLACE FUNCTION pg_temp.key_of(raw bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT ('x' || encode(substring(sha256(raw) FOR 4), 'hex'))::bit(32)::bigint
$$

-- name: make_weight_of
CREATE OR REPLACE FUNCTION pg_temp.weight_of(tx_id bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT (((tx_id + 1) % 2147483647) * ((tx_id + 1) % 2147483647)) % 2147483647
$$

-- name: make_asset_key
-- Once for each asset instead of for each of its rows.
CREATE TEMPORARY TABLE asset_key (asset_id integer PRIMARY KEY, key bigint)

-- name: key_assets
INSERT INTO asset_key
SELECT asset_id, pg_temp.key_of(policy.hash || asset.name) FROM asset LEFT JOIN policy USING (policy_id)

-- name: address_tx
SELECT CASE WHEN bool_and(in_order AND raw IS NOT NULL) IS NOT FALSE
            THEN coalesce(sum(pg_temp.key_of(raw) * weights), 0)::text END
FROM (
    SELECT address_id, sum(pg_temp.weight_of(tx_id)) AS weights,
           count(*) = max(seq) + 1 AND min(seq) = 0 AND count(*) FILTER (WHERE tx_id <= before) = 0 AS in_order
    FROM (
        SELECT address_id, seq, tx_id, lag(tx_id) OVER (PARTITION BY address_id ORDER BY seq) AS before FROM address_tx
    ) numbered
    GROUP BY address_id
) history
LEFT JOIN address USING (address_id)

-- name: asset_tx
SELECT CASE WHEN bool_and(in_order AND key IS NOT NULL) IS NOT FALSE THEN coalesce(sum(key * moved), 0)::text END
FROM (
    SELECT asset_id, sum(pg_temp.weight_of(tx_id) * coalesce(large, quantity)) AS moved,
           count(*) = max(seq) + 1 AND min(seq) = 0 AND count(*) FILTER (WHERE tx_id <= before OR coalesce(large, quantity) <= 0) = 0 AS in_order
    FROM (
        SELECT asset_id, seq, tx_id, quantity, large, lag(tx_id) OVER (PARTITION BY asset_id ORDER BY seq) AS before
        FROM asset_tx
    ) numbered
    GROUP BY asset_id
) history
LEFT JOIN asset_key USING (asset_id)

-- name: mint
SELECT CASE WHEN bool_and(in_order AND key IS NOT NULL) IS NOT FALSE THEN coalesce(sum(key * moved), 0)::text END
FROM (
    SELECT asset_id, sum(pg_temp.weight_of(tx_id) * coalesce(large, quantity)) AS moved,
           count(*) = max(seq) + 1 AND min(seq) = 0 AND count(*) FILTER (WHERE tx_id <= before OR coalesce(large, quantity) = 0) = 0 AS in_order
    FROM (
        SELECT asset_id, seq, tx_id, quantity, large, lag(tx_id) OVER (PARTITION BY asset_id ORDER BY seq) AS before
        FROM mint
    ) numbered
    GROUP BY asset_id
) history
LEFT JOIN asset_key USING (asset_id)

-- name: named
SELECT coalesce(sum(key * pg_temp.weight_of(tx_id)::numeric), 0)::text FROM mint JOIN asset_key USING (asset_id) WHERE named

-- name: holder
SELECT CASE WHEN bool_and(key IS NOT NULL AND raw IS NOT NULL) IS NOT FALSE
            THEN coalesce(sum(key * pg_temp.key_of(raw)::numeric * quantity), 0)::text END
FROM holder LEFT JOIN asset_key USING (asset_id) LEFT JOIN address USING (address_id)

-- name: stake
SELECT coalesce(sum(pg_temp.key_of(raw) * balance::numeric), 0)::text FROM stake WHERE balance <> 0

-- name: reference_output
SELECT CASE WHEN bool_and(key IS NOT NULL) IS NOT FALSE
            THEN coalesce(sum(key * pg_temp.weight_of(tx_id)::numeric * (output_index + 1)), 0)::text END
FROM reference_output LEFT JOIN asset_key USING (asset_id)

-- name: spent_reference
SELECT CASE WHEN bool_and(hash IS NOT NULL) IS NOT FALSE
            THEN coalesce(sum(
                key * pg_temp.key_of(hash)::numeric * (output_index + 1) * pg_temp.weight_of(spent_tx_id)
            ), 0)::text END
FROM reference_output JOIN asset_key USING (asset_id) LEFT JOIN tx USING (tx_id)
WHERE spent_tx_id IS NOT NULL

-- name: asset
SELECT count(*)::text
FROM asset
FULL JOIN (SELECT asset_id, tx_id AS first_paid FROM asset_tx WHERE seq = 0) paid USING (asset_id)
FULL JOIN (
    SELECT asset_id, sum(coalesce(large, quantity)) AS supply,
           count(*) FILTER (WHERE coalesce(large, quantity) > 0) AS mints,
           count(*) FILTER (WHERE coalesce(large, quantity) < 0) AS burns,
           min(tx_id) AS first_moved,
           min(tx_id) FILTER (WHERE coalesce(large, quantity) > 0) AS first_mint_tx_id
    FROM mint
    GROUP BY asset_id
) minted USING (asset_id)
WHERE (asset.supply, asset.mint_count, asset.burn_count) IS DISTINCT FROM
      (coalesce(minted.supply, 0), coalesce(minted.mints, 0), coalesce(minted.burns, 0))
   OR (asset.first_tx_id, asset.first_mint_tx_id) IS DISTINCT FROM (least(first_paid, first_moved), minted.first_mint_tx_id)

-- name: policy
SELECT count(*)::text
FROM policy LEFT JOIN (SELECT policy_id, count(first_tx_id) AS assets FROM asset GROUP BY policy_id) counted USING (policy_id)
WHERE asset_count <> coalesce(counted.assets, 0)

-- name: policy_holder
-- The difference of two sums that are alike where the tables are.
SELECT (
    (SELECT coalesce(sum(hashint8extended(policy_id::bigint << 32 | address_id, 0) * quantity), 0) FROM policy_holder)
    - (SELECT coalesce(sum(hashint8extended(policy_id::bigint << 32 | address_id, 0) * quantity), 0)
       FROM holder JOIN asset USING (asset_id))
)::text
