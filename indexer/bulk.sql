-- From bulk to live: histories that were staged without index are sorted, numbered and indexed, once, and amounts added up.

-- name: indexes_of
-- Every index of a table, with what makes it again; those of a constraint are made with it.
SELECT i.indexrelid::regclass::text,
       CASE WHEN c.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
            ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', i.indrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
       END,
       c.conname
FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u')
WHERE i.indrelid = $1::text::regclass
ORDER BY c.conname NULLS LAST

-- name: number_address_txs
INSERT INTO address_tx (address_id, seq, tx_id)
SELECT address_id, row_number() OVER (PARTITION BY address_id ORDER BY tx_id) - 1, tx_id FROM address_tx_staged
ORDER BY address_id, tx_id

-- name: number_asset_txs
INSERT INTO asset_tx (asset_id, seq, tx_id, quantity, large)
SELECT asset_id, row_number() OVER (PARTITION BY asset_id ORDER BY tx_id) - 1, tx_id, quantity, large
FROM asset_tx_staged
ORDER BY asset_id, tx_id

-- name: number_mints
INSERT INTO mint (asset_id, seq, tx_id, quantity, large, named)
SELECT asset_id, row_number() OVER (PARTITION BY asset_id ORDER BY tx_id) - 1, tx_id, quantity, large, named
FROM mint_staged
ORDER BY asset_id, tx_id

-- name: add_up_holders
INSERT INTO holder (asset_id, address_id, quantity)
SELECT asset_id, address_id, quantity
FROM (
    SELECT asset_id, address_id, coalesce(sum(quantity), 0) + coalesce(sum(large), 0) AS quantity
    FROM holder_staged
    GROUP BY asset_id, address_id
) held
WHERE quantity <> 0
ORDER BY asset_id, address_id

-- name: add_up_policy_holders
INSERT INTO policy_holder (policy_id, address_id, quantity)
SELECT policy_id, address_id, sum(quantity) FROM holder JOIN asset USING (asset_id)
GROUP BY policy_id, address_id
ORDER BY policy_id, address_id

-- name: sum_assets
-- After the histories of mints and transactions: what they say of each asset, also that it has none of either.
UPDATE asset SET supply = found.supply, mint_count = found.mints, burn_count = found.burns,
    first_tx_id = found.first_tx_id, first_mint_tx_id = found.first_mint_tx_id
FROM (
    SELECT asset_id, coalesce(minted.supply, 0) AS supply, coalesce(mints, 0) AS mints, coalesce(burns, 0) AS burns,
           least(first_paid, first_minted_or_burned) AS first_tx_id, minted.first_mint_tx_id
    FROM asset
    LEFT JOIN (SELECT asset_id, tx_id AS first_paid FROM asset_tx WHERE seq = 0) paid USING (asset_id)
    LEFT JOIN (
        SELECT asset_id, coalesce(sum(quantity), 0) + coalesce(sum(large), 0) AS supply,
               count(*) FILTER (WHERE coalesce(large, quantity) > 0) AS mints,
               count(*) FILTER (WHERE coalesce(large, quantity) < 0) AS burns,
               min(tx_id) AS first_minted_or_burned,
               min(tx_id) FILTER (WHERE coalesce(large, quantity) > 0) AS first_mint_tx_id
        FROM mint
        GROUP BY asset_id
    ) minted USING (asset_id)
) found
WHERE asset.asset_id = found.asset_id

-- name: complete_step
UPDATE tip SET finalize_step = $1

-- name: go_live
UPDATE tip SET phase = 'live', finalize_step = 0
