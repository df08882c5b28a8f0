-- Recomputed tables: temporary tables in which parts of history are added up.

-- name: genesis_outputs
-- With the numbers of their addresses.
SELECT tx_id, tx_hash, address, lovelace, address_no FROM genesis_output g LEFT JOIN address ON address.raw = g.address

-- name: make_address_part
CREATE TEMPORARY TABLE address_part (address_no integer, txs bigint, tx_ids bigint, lovelace bigint)

-- name: make_stake_part
-- The lovelace of genesis outputs, by reward account.
CREATE TEMPORARY TABLE stake_part (raw bytea, lovelace bigint)

-- name: make_account_part
CREATE TEMPORARY TABLE account_part (
    stake_no integer, txs bigint, tx_ids bigint, withdrawals bigint, withdrawal_tx_ids bigint,
        withdrawal_weighted bigint
)

-- name: make_utxo_part
-- The outputs that spender does not name.
CREATE TEMPORARY TABLE utxo_part (
    tx_id bigint, output_index integer, lovelace bigint, address_no integer, asset_nos integer[]
)

-- name: make_holder_part
CREATE TEMPORARY TABLE holder_part (asset_no integer, address_no integer, quantity bigint, large numeric)

-- name: make_asset_part
CREATE TEMPORARY TABLE asset_part (
    asset_no integer, txs bigint, tx_ids bigint, weighted bigint, supply bigint, supply_large numeric, mints bigint,
        burns bigint,
    mint_tx_ids bigint, mint_weighted bigint, named bigint, named_tx_ids bigint, first_tx_id bigint,
        first_mint_tx_id bigint
)

-- name: make_reference_part
CREATE TEMPORARY TABLE reference_part (asset_no integer, tx_id bigint, output_index integer)

-- name: make_spent_part
CREATE TEMPORARY TABLE spent_part (tx_hash bytea, output_index bigint, tx_id bigint)

-- name: make_recomputed_address
CREATE TEMPORARY TABLE recomputed_address (address_no integer, txs bigint, tx_ids numeric)

-- name: make_recomputed_account
CREATE TEMPORARY TABLE recomputed_account (
    stake_no integer, txs bigint, tx_ids numeric, withdrawals bigint, withdrawal_tx_ids numeric,
        withdrawal_weighted numeric
)

-- name: make_recomputed_stake
CREATE TEMPORARY TABLE recomputed_stake (stake_no integer, raw bytea, lovelace numeric)

-- name: make_recomputed_asset
CREATE TEMPORARY TABLE recomputed_asset (
    asset_no integer, policy_no integer, txs bigint, tx_ids numeric, weighted numeric, supply numeric,
    mints bigint, burns bigint, mint_tx_ids numeric, mint_weighted numeric, named bigint, named_tx_ids numeric,
    first_tx_id bigint, first_mint_tx_id bigint
)

-- name: make_recomputed_holder
CREATE TEMPORARY TABLE recomputed_holder (asset_no integer, policy_no integer, address_no integer, quantity numeric)

-- name: sum_addresses
INSERT INTO recomputed_address
SELECT address_no, sum(txs), sum(tx_ids) FROM address_part GROUP BY address_no

-- name: sum_accounts
INSERT INTO recomputed_account
SELECT stake_no, sum(txs), sum(tx_ids), sum(withdrawals), sum(withdrawal_tx_ids),
       mod(sum(withdrawal_weighted), 2305843009213693951)
FROM account_part GROUP BY stake_no

-- name: sum_stakes
INSERT INTO recomputed_stake
SELECT stake_no, raw, sum(lovelace)
FROM (
    SELECT stake_no, stake.raw, address_part.lovelace
    FROM address_part JOIN address USING (address_no) LEFT JOIN stake USING (stake_no)
    WHERE stake_no IS NOT NULL
    UNION ALL
    SELECT stake_no, raw, lovelace FROM stake_part LEFT JOIN stake USING (raw)
) part
GROUP BY stake_no, raw

-- name: sum_assets
-- Weighted sums are taken modulo 2^61 - 1, as in recompute.py.
INSERT INTO recomputed_asset
SELECT asset_no, asset.policy_no, sum(txs), sum(tx_ids), mod(sum(weighted), 2305843009213693951),
       coalesce(sum(part.supply), 0) + coalesce(sum(supply_large), 0), sum(mints), sum(burns),
       sum(mint_tx_ids), mod(sum(mint_weighted), 2305843009213693951), sum(named), sum(named_tx_ids),
       min(part.first_tx_id), min(part.first_mint_tx_id)
FROM asset_part part LEFT JOIN asset USING (asset_no)
GROUP BY asset_no, asset.policy_no

-- name: sum_holders
INSERT INTO recomputed_holder
SELECT asset_no, asset.policy_no, address_no, quantity
FROM (
    SELECT asset_no, address_no, coalesce(sum(quantity), 0) + coalesce(sum(large), 0) AS quantity
    FROM holder_part GROUP BY asset_no, address_no
) part
LEFT JOIN asset USING (asset_no)
WHERE quantity <> 0
