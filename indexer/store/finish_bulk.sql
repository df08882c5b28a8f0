-- From bulk to live: histories that were staged without indexes are sorted, numbered and indexed, once, and amounts
-- added up.

-- name: number_history
-- A history from what is staged: chunks of 64 entries.
INSERT INTO {history} ({owner_no}, chunk, {entries})
SELECT {owner_no}, chunk, string_agg({entry}, '' ORDER BY tx_id)
FROM (
    SELECT *, (row_number() OVER (PARTITION BY {owner_no} ORDER BY tx_id) - 1) >> 6 AS chunk FROM {staged} staged
) numbered
GROUP BY {owner_no}, chunk
ORDER BY {owner_no}, chunk

-- name: number_mints
INSERT INTO mint (asset_no, seq, tx_id, quantity, large, named)
SELECT asset_no, row_number() OVER (PARTITION BY asset_no ORDER BY tx_id) - 1, tx_id, quantity, large, named
FROM mint_staged
ORDER BY asset_no, tx_id

-- name: add_up_holders
INSERT INTO holder (asset_no, address_no, quantity)
SELECT asset_no, address_no, quantity
FROM (
    SELECT asset_no, address_no, coalesce(sum(quantity), 0) + coalesce(sum(large), 0) AS quantity
    FROM holder_staged
    GROUP BY asset_no, address_no
) held
WHERE quantity <> 0
ORDER BY asset_no, address_no

-- name: add_up_policy_holders
INSERT INTO policy_{holder} (policy_no, {owner_no}, quantity)
SELECT policy_no, {owner_no}, sum(quantity) FROM {holder} JOIN asset USING (asset_no)
GROUP BY policy_no, {owner_no}
ORDER BY policy_no, {owner_no}

-- name: add_up_account_holders
INSERT INTO account_holder (asset_no, account_no, quantity)
SELECT asset_no, coalesce(stake_no, -address_no) AS account_no, sum(quantity)
FROM holder JOIN address USING (address_no)
GROUP BY 1, 2
ORDER BY 1, 2

-- name: add_up_credential_holders
INSERT INTO credential_holder (asset_no, credential_no, quantity)
SELECT asset_no, credential_no, sum(quantity)
FROM holder JOIN address USING (address_no)
WHERE credential_no IS NOT NULL
GROUP BY 1, 2
ORDER BY 2, 1

-- name: add_up_sent
-- What owners, {sent}.{owner_no}, have spent; a condition says of which it is kept.
INSERT INTO {sent} ({owner_no}, asset_no, quantity)
SELECT {owner_no}, asset_no, quantity
FROM (
    SELECT {owner_no}, asset_no, coalesce(sum(quantity), 0) + coalesce(sum(large), 0) AS quantity
    FROM address_sent_staged JOIN address USING (address_no)
    WHERE {kept}
    GROUP BY {owner_no}, asset_no
) sent
WHERE quantity <> 0
ORDER BY {owner_no}, asset_no

-- name: is_long
-- An owner is found by any chunk from which on its history is long.
{owner_no} IN (SELECT {owner_no} FROM {history} WHERE is_long_history((chunk << 6) + length(tx_ids) / 8))

-- name: sum_assets
-- After the histories of mints and transactions: the supply, counts and first transactions of each asset.
UPDATE asset SET supply = found.supply, mint_count = found.mints, burn_count = found.burns,
    first_tx_id = found.first_tx_id, first_mint_tx_id = found.first_mint_tx_id
FROM (
    SELECT asset_no, coalesce(minted.supply, 0) AS supply, coalesce(mints, 0) AS mints, coalesce(burns, 0) AS burns,
           least(first_paid, first_minted_or_burned) AS first_tx_id, minted.first_mint_tx_id
    FROM asset
    LEFT JOIN (SELECT asset_no, tx_id_at(entries, 0) AS first_paid FROM asset_tx WHERE chunk = 0) paid USING (asset_no)
    LEFT JOIN (
        SELECT asset_no, coalesce(sum(quantity), 0) + coalesce(sum(large), 0) AS supply,
               count(*) FILTER (WHERE coalesce(large, quantity) > 0) AS mints,
               count(*) FILTER (WHERE coalesce(large, quantity) < 0) AS burns,
               min(tx_id) AS first_minted_or_burned,
               min(tx_id) FILTER (WHERE coalesce(large, quantity) > 0) AS first_mint_tx_id
        FROM mint
        GROUP BY asset_no
    ) minted USING (asset_no)
) found
WHERE asset.asset_no = found.asset_no

-- name: complete_step
UPDATE tip SET finalize_step = $1

-- name: go_live
UPDATE tip SET phase = 'live', finalize_step = 0
