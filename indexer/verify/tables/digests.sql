-- Entries of derived tables, with the keys and weights of keys.py modulo 2860486313, and what is asked of them.
--
-- Entries are SELECTs with the columns first and second, which are the pair, hash, quantity, and added_by, the
-- transaction that the entry is of, or null. $1 and $2 are the transactions after the noted block, from tx_id $1 to
-- before $2: their entries are left out.

-- name: make_key_of
-- The key of a row number, which may be negative: 3478520302 is the sum of 618033989 and the modulus.
CREATE OR REPLACE FUNCTION pg_temp.key_of(number integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT (((number + 3478520302) % 2860486313) * ((number + 3478520302) % 2860486313) % 2860486313)
       * (((number + 3478520302) % 2860486313) * ((number + 3478520302) % 2860486313) % 2860486313)
       % 2860486313
       * ((number + 3478520302) % 2860486313) % 2860486313
$$

-- name: make_weight_of
CREATE OR REPLACE FUNCTION pg_temp.weight_of(tx_id bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
SELECT (((tx_id + 1) % 2860486313) * ((tx_id + 1) % 2860486313)) % 2860486313
$$

-- name: make_left_output
-- The outputs that `spender` does not name: the unspent ones, and those that the ledger has dropped.
CREATE OR REPLACE TEMPORARY VIEW left_output AS
SELECT tx_id, output_index, lovelace, address_no, stake_no, credential_no, asset_nos FROM utxo
UNION ALL
SELECT tx_id, output_index, lovelace, address_no, NULL, NULL, NULL FROM dropped_output

-- name: digest
-- By partition, of which there are 4096.
SELECT (hash & 4095)::integer AS partition,
       ((sum(hash * quantity) % 2860486313 + 2860486313) % 2860486313)::text AS digest
FROM ({entries}) entry
WHERE (added_by >= $1::bigint AND added_by < $2::bigint) IS NOT TRUE
GROUP BY 1

-- name: listed
-- The entries in the partitions $3.
SELECT first, second, sum(quantity)::text AS quantity
FROM ({entries}) entry
WHERE (added_by >= $1::bigint AND added_by < $2::bigint) IS NOT TRUE AND (hash & 4095) = ANY ($3::bigint[])
GROUP BY first, second

-- name: utxo
-- With dropped_output, which is compared with the rows of utxo. The quantity of an output depends on what is in it.
SELECT tx_id AS first, output_index AS second,
       pg_temp.weight_of(tx_id) * (output_index + 1::bigint) % 2860486313 AS hash,
       (pg_temp.key_of(address_no) * (lovelace % 2860486313 + 1) % 2860486313
        + coalesce(pg_temp.key_of(stake_no), 0) * 1640531527 % 2860486313
        + coalesce(pg_temp.key_of(credential_no), 0) * 1183186591 % 2860486313
        + CASE WHEN asset_nos IS NULL THEN 0 ELSE (
              SELECT CASE WHEN array_agg(asset_no ORDER BY asset_no) = asset_nos
                          THEN sum(pg_temp.key_of(asset_no)) % 2860486313 ELSE -1 END::bigint
              FROM unnest(asset_nos) AS asset_no
          ) END) % 2860486313 AS quantity,
       NULL::bigint AS added_by
FROM left_output

-- name: mint
-- Twice the quantity, plus 1 if metadata name the asset.
SELECT asset_no AS first, tx_id AS second, pg_temp.key_of(asset_no) * pg_temp.weight_of(tx_id) % 2860486313 AS hash,
       coalesce(large, quantity) * 2 + named::integer AS quantity, tx_id AS added_by
FROM mint

-- name: holders
-- What addresses or accounts hold of assets or policies, or have spent: lovelace has the number 0 there. The number of
-- an account that is an address is negative.
-- `_HELD_FROM` of expected.py tells what is added to the number of an asset or a policy.
SELECT {held_no} AS first, {owner_no} AS second,
       pg_temp.key_of({held_no} + 1073741824) * pg_temp.key_of({owner_no}) % 2860486313 AS hash, quantity,
       NULL::bigint AS added_by
FROM {holder}

-- name: stake
SELECT stake_no AS first, 0 AS second, pg_temp.key_of(stake_no) AS hash, balance::numeric AS quantity,
       NULL::bigint AS added_by
FROM stake WHERE balance <> 0

-- name: address_count
SELECT stake_no AS first, 0 AS second, pg_temp.key_of(stake_no) AS hash, address_count::bigint AS quantity,
       NULL::bigint AS added_by
FROM stake WHERE address_count <> 0

-- name: reference_output
-- With the number of its output, and the transaction that spent it plus 2, or 1 for none.
SELECT asset_no AS first, tx_id << 16 | output_index AS second,
       pg_temp.key_of(asset_no) * (pg_temp.weight_of(tx_id) * (output_index + 1::bigint) % 2860486313) % 2860486313
           AS hash,
       CASE WHEN spent_tx_id >= $1 AND spent_tx_id < $2 THEN 1 ELSE coalesce(spent_tx_id + 2, 1) END::numeric
           AS quantity,
       tx_id AS added_by
FROM reference_output

-- name: script_output
-- With the transaction that spent the output plus 2, or 1 for none. attachments.py compares the hashes.
SELECT tx_id AS first, output_index AS second,
       pg_temp.weight_of(tx_id) * (output_index + 1::bigint) % 2860486313 AS hash,
       CASE WHEN spent_tx_id >= $1 AND spent_tx_id < $2 THEN 1 ELSE coalesce(spent_tx_id + 2, 1) END::numeric
           AS quantity,
       tx_id AS added_by
FROM script_output
