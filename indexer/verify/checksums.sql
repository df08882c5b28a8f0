-- The sums of checksums.py over the derived tables, modulo 2860486313, as text; and for tables that are derived from
-- other derived tables the number of rows that differ from them. Null if a row has a dangling reference, a quantity is
-- missing, or a history is not numbered 0, 1, 2 … in order of tx_id. With arguments, rows of transactions from tx_id $1
-- to before $2, those after the noted block, are left out of the sum.

-- name: make_key_of
-- The key of a row number.
CREATE OR REPLACE FUNCTION pg_temp.key_of(number integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT (((number + 618033989::bigint) % 2860486313) * ((number + 618033989::bigint) % 2860486313) % 2860486313)
       * (((number + 618033989::bigint) % 2860486313) * ((number + 618033989::bigint) % 2860486313) % 2860486313)
       % 2860486313
       * ((number + 618033989::bigint) % 2860486313) % 2860486313
$$

-- name: make_weight_of
CREATE OR REPLACE FUNCTION pg_temp.weight_of(tx_id bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT (((tx_id + 1) % 2860486313) * ((tx_id + 1) % 2860486313)) % 2860486313
$$

-- name: make_holding_of
-- One key for a holder, whose number may be negative, and the asset or policy that it holds.
CREATE OR REPLACE FUNCTION pg_temp.holding_of(held_no integer, owner_no integer) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
SELECT hashint8extended(held_no::bigint << 32 | (owner_no & 4294967295), 0)
$$

-- name: make_reduced
-- A sum modulo 2860486313, from 0 on even if the sum is negative.
CREATE OR REPLACE FUNCTION pg_temp.reduced(total numeric) RETURNS text LANGUAGE sql IMMUTABLE AS $$
SELECT ((coalesce(total, 0) % 2860486313 + 2860486313) % 2860486313)::text
$$

-- name: make_left_output
-- The outputs that `spender` does not name: the unspent ones, and those that the ledger has dropped.
CREATE OR REPLACE TEMPORARY VIEW left_output AS
SELECT tx_id, output_index, lovelace, address_no, stake_no, asset_nos FROM utxo
UNION ALL
SELECT tx_id, output_index, lovelace, address_no, NULL, NULL FROM dropped_output

-- name: account_withdrawal
-- A withdrawal may be of 0 lovelace.
SELECT CASE WHEN bool_and(in_order AND raw IS NOT NULL) IS NOT FALSE
            THEN pg_temp.reduced(sum(pg_temp.key_of(stake_no) * withdrawn)) END AS total
FROM (
    SELECT stake_no, sum(pg_temp.weight_of(tx_id) * (lovelace + 1)) AS withdrawn,
           count(*) = max(seq) + 1 AND min(seq) = 0 AND count(*) FILTER (WHERE tx_id <= before) = 0 AS in_order
    FROM (
        SELECT stake_no, seq, tx_id, lovelace, lag(tx_id) OVER (PARTITION BY stake_no ORDER BY seq) AS before
        FROM account_withdrawal_entry WHERE tx_id < $1 OR tx_id >= $2
    ) numbered
    GROUP BY stake_no
) history
LEFT JOIN stake USING (stake_no)

-- name: utxo
-- With dropped_output, which is compared with the rows of utxo.
SELECT CASE WHEN bool_and(in_order AND raw IS NOT NULL
                AND u.stake_no IS NOT DISTINCT FROM address.stake_no) IS NOT FALSE
            THEN pg_temp.reduced(sum(
                pg_temp.weight_of(tx_id) * (output_index + 1)::numeric
                * (pg_temp.key_of(address_no) * (lovelace + 1)::numeric + held)
            )) END AS total
FROM left_output u
LEFT JOIN address USING (address_no)
CROSS JOIN LATERAL (
    SELECT coalesce(sum(pg_temp.key_of(asset_no)), 0) AS held,
           array_agg(asset_no ORDER BY asset_no) IS NOT DISTINCT FROM u.asset_nos AS in_order
    FROM unnest(u.asset_nos) AS asset_no
) assets

-- name: mint
-- Also null if the supply, the counts or the first transactions of an asset do not follow from its mints and first
-- payment.
SELECT CASE WHEN bool_and(in_order AND name IS NOT NULL AND supply = coalesce(moved_supply, 0) AND scale(supply) = 0
                          AND mint_count = coalesce(mints, 0) AND burn_count = coalesce(burns, 0)
                          AND first_mint_tx_id IS NOT DISTINCT FROM first_minted
                          AND first_tx_id IS NOT DISTINCT FROM least(first_paid, first_moved)) IS NOT FALSE
            THEN pg_temp.reduced(sum(pg_temp.key_of(asset_no) * moved)) END AS total
FROM asset
FULL JOIN (SELECT asset_no, tx_id_at(entries, 0) AS first_paid FROM asset_tx WHERE chunk = 0) paid USING (asset_no)
FULL JOIN (
    SELECT asset_no, sum(pg_temp.weight_of(tx_id) * minted) FILTER (WHERE tx_id < $1 OR tx_id >= $2) AS moved,
           sum(minted) AS moved_supply,
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

-- name: named
SELECT pg_temp.reduced(sum(pg_temp.key_of(asset_no) * pg_temp.weight_of(tx_id)::numeric)) AS total
FROM mint WHERE named AND (tx_id < $1 OR tx_id >= $2)

-- name: holder
SELECT CASE WHEN bool_and(name IS NOT NULL AND raw IS NOT NULL) IS NOT FALSE
            THEN pg_temp.reduced(sum(pg_temp.key_of(asset_no) * pg_temp.key_of(address_no)::numeric * quantity))
       END AS total
FROM holder LEFT JOIN asset USING (asset_no) LEFT JOIN address USING (address_no)

-- name: stake
-- A balance is the sum of unspent outputs.
SELECT count(*)::text AS total
FROM stake
FULL JOIN (SELECT stake_no, sum(lovelace) AS lovelace FROM utxo WHERE stake_no IS NOT NULL GROUP BY stake_no) unspent
    USING (stake_no)
WHERE coalesce(balance, 0) <> coalesce(lovelace, 0)

-- name: address_count
-- Without genesis addresses that have no history: histories.py adds up those with one.
SELECT pg_temp.reduced(
    (SELECT coalesce(sum(pg_temp.key_of(stake_no) * address_count::numeric), 0) FROM stake)
    - (
        SELECT coalesce(sum(pg_temp.key_of(stake_no)), 0)
        FROM (SELECT DISTINCT address_no, stake_no FROM genesis_output JOIN address
            ON raw = genesis_output.address) of_genesis
        WHERE NOT EXISTS (SELECT FROM address_tx WHERE address_tx.address_no = of_genesis.address_no)
    )
) AS total

-- name: reference_output
SELECT CASE WHEN bool_and(name IS NOT NULL) IS NOT FALSE
            THEN pg_temp.reduced(sum(
                pg_temp.key_of(asset_no) * pg_temp.weight_of(tx_id)::numeric * (output_index + 1)
            )) END AS total
FROM reference_output LEFT JOIN asset USING (asset_no)
WHERE tx_id < $1 OR tx_id >= $2

-- name: spent_reference
-- By the first 32 bits of the hash that the spending input names.
SELECT CASE WHEN bool_and(hash IS NOT NULL) IS NOT FALSE
            THEN pg_temp.reduced(sum(
                pg_temp.key_of(asset_no) * ('x' || encode(substring(hash FOR 4), 'hex'))::bit(32)::bigint::numeric
                * (output_index + 1) * pg_temp.weight_of(spent_tx_id)
            )) END AS total
FROM reference_output LEFT JOIN tx USING (tx_id)
WHERE spent_tx_id < $1 OR spent_tx_id >= $2

-- name: policy
SELECT count(*)::text AS total
FROM policy LEFT JOIN (SELECT policy_no, count(first_tx_id) AS assets
    FROM asset GROUP BY policy_no) counted USING (policy_no)
WHERE asset_count <> coalesce(counted.assets, 0)

-- name: policy_holders
-- For a table of holders by policy and the {holder} that it sums up, the difference of two sums, which is 0 if they
-- match.
SELECT (
    (SELECT coalesce(sum(pg_temp.holding_of(policy_no, {owner_no}) * quantity), 0) FROM policy_{holder})
    - (SELECT coalesce(sum(pg_temp.holding_of(policy_no, {owner_no}) * quantity), 0) FROM {holder}
        JOIN asset USING (asset_no))
)::text AS total

-- name: account_holder
-- The same for account_holder, which sums up holder.
SELECT (
    (SELECT coalesce(sum(pg_temp.holding_of(asset_no, account_no) * quantity), 0) FROM account_holder)
    - (SELECT coalesce(sum(pg_temp.holding_of(asset_no, coalesce(stake_no, -address_no)) * quantity), 0)
       FROM holder JOIN address USING (address_no))
)::text AS total
