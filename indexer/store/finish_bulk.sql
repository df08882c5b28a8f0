-- From bulk to live: histories that were staged without indexes are sorted, numbered and indexed, once, and amounts added up.

-- name: number_address_txs
INSERT INTO address_tx (address_no, chunk, tx_ids)
SELECT address_no, chunk, string_agg(int8send(tx_id), '' ORDER BY tx_id)
FROM (
    SELECT address_no, (row_number() OVER (PARTITION BY address_no ORDER BY tx_id) - 1) >> 6 AS chunk, tx_id
    FROM address_tx_staged
) numbered
GROUP BY address_no, chunk
ORDER BY address_no, chunk

-- name: number_account_txs
INSERT INTO account_tx (stake_no, chunk, tx_ids)
SELECT stake_no, chunk, string_agg(int8send(tx_id), '' ORDER BY tx_id)
FROM (
    SELECT stake_no, (row_number() OVER (PARTITION BY stake_no ORDER BY tx_id) - 1) >> 6 AS chunk, tx_id
    FROM (
        SELECT DISTINCT stake_no, tx_id
        FROM address_tx_staged JOIN address USING (address_no)
        WHERE stake_no IS NOT NULL
    ) of_accounts
) numbered
GROUP BY stake_no, chunk
ORDER BY stake_no, chunk

-- name: number_withdrawals
INSERT INTO account_withdrawal (stake_no, chunk, entries)
SELECT stake_no, chunk, string_agg(int8send(tx_id) || '\x0000' || int8send(lovelace), '' ORDER BY tx_id)
FROM (
    SELECT stake_no, (row_number() OVER (PARTITION BY stake_no ORDER BY tx_id) - 1) >> 6 AS chunk, tx_id, lovelace
    FROM account_withdrawal_staged
) numbered
GROUP BY stake_no, chunk
ORDER BY stake_no, chunk

-- name: number_asset_txs
INSERT INTO asset_tx (asset_no, chunk, entries)
SELECT asset_no, chunk, string_agg(
    int8send(tx_id) || CASE WHEN large IS NULL THEN '\x0000' || int8send(quantity) ELSE quantity_bytes(large) END, ''
    ORDER BY tx_id
)
FROM (
    SELECT asset_no, (row_number() OVER (PARTITION BY asset_no ORDER BY tx_id) - 1) >> 6 AS chunk, tx_id, quantity, large
    FROM asset_tx_staged
) numbered
GROUP BY asset_no, chunk
ORDER BY asset_no, chunk

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
