-- Comparisons of derived tables, some with recomputed rows; each returns the first $1 differences.

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
         + (SELECT count(*) FROM spender_staged) AS rows
)
SELECT what, NULL::bytea AS address, indexed, recomputed
FROM tip, staged, last, LATERAL (VALUES
    ('slot_no of tip', tip.slot_no::text, last.slot_no::text),
    ('block_no of tip', tip.block_no::text, last.block_no::text),
    ('block_hash of tip', encode(tip.block_hash, 'hex'), encode(last.hash, 'hex')),
    ('tx_count of tip', tip.tx_count::text, (SELECT count(*) FROM tx)::text),
    ('finalize_step of tip', tip.finalize_step::text, '0'),
    ('staged rows', staged.rows::text, '0')
) figures (what, indexed, recomputed)
WHERE indexed IS DISTINCT FROM recomputed
LIMIT $1

-- name: check_address
-- Every address number of history has a row, and every asset has exactly one number. The stake credential of a base
-- address follows from its bytes, which are a header and a hash of 28 bytes at least (CIP-19).
--
-- If nothing is recomputed, recomputed_address is empty, and that part finds nothing. It is not needed then: since the
-- checksum of address_tx agrees, that table has every address number of history, and histories.py has found their rows.
--
-- NOTE: without an order, the planner expects to stop at the first differences, and looks up one stake credential after
-- the other. With the names of assets grouped on their own, an index is enough for them.
SELECT 'raw of address_no ' || r.address_no AS what, NULL::bytea AS address, NULL AS indexed, 'an address' AS recomputed
FROM recomputed_address r LEFT JOIN address USING (address_no) WHERE address.raw IS NULL
UNION ALL
SELECT 'raw of address_no ' || address_no, NULL, length(raw) || ' bytes', 'at least 29'
FROM address WHERE length(raw) < 29
UNION ALL
SELECT 'stake_no of', address.raw, address.stake_no::text, stake.stake_no::text
FROM address
LEFT JOIN stake ON stake.raw = CASE WHEN length(address.raw) >= 29 AND get_byte(address.raw, 0) < 64 THEN
    set_byte(substring(address.raw FROM 29 FOR 29), 0,
             CASE WHEN get_byte(address.raw, 0) < 32 THEN 224 ELSE 240 END | (get_byte(address.raw, 0) & 15)) END
WHERE address.stake_no IS DISTINCT FROM stake.stake_no
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
    FROM recomputed_asset GROUP BY policy_no) counted USING (policy_no)
WHERE asset_count <> coalesce(counted.assets, 0)
ORDER BY policy_no
LIMIT $1

-- name: check_asset
SELECT figures.what || ' of asset '
    || coalesce(encode(policy.policy_id, 'hex') || '.' || encode(a.name, 'hex'), 'number ' || asset_no) AS what,
       NULL::bytea AS address, indexed, recomputed
FROM asset a
FULL JOIN recomputed_asset r USING (asset_no)
LEFT JOIN policy ON policy.policy_no = a.policy_no,
LATERAL (VALUES
    ('asset_no', coalesce(a.asset_no, 0)::text, asset_no::text),
    ('supply', a.supply::text, coalesce(r.supply, 0)::text),
    ('mint_count', a.mint_count::text, coalesce(r.mints, 0)::text),
    ('burn_count', a.burn_count::text, coalesce(r.burns, 0)::text),
    ('first_tx_id', a.first_tx_id::text, r.first_tx_id::text),
    ('first_mint_tx_id', a.first_mint_tx_id::text, r.first_mint_tx_id::text)
) figures (what, indexed, recomputed)
WHERE indexed IS DISTINCT FROM recomputed
ORDER BY asset_no
LIMIT $1

-- name: check_txs
-- Of address_tx or account_tx ({history}): {owner_no} is the number of an {owner}, an address or a stake credential.
WITH found AS (
    SELECT {owner_no}, count(*) AS txs, sum(tx_id) AS tx_ids,
           count(*) FILTER (WHERE seq <> place OR tx_id <= before) AS wrong
    FROM (
        SELECT {owner_no}, seq, tx_id, row_number() OVER in_order - 1 AS place, lag(tx_id) OVER in_order AS before
        FROM {history}_entry WINDOW in_order AS (PARTITION BY {owner_no} ORDER BY seq)
    ) numbered
    GROUP BY {owner_no}
)
SELECT '{history} of' || CASE WHEN {owner}.raw IS NULL THEN ' {owner_no} ' || {owner_no} ELSE '' END AS what,
       {owner}.raw AS address,
       format('%s entries, %s out of order, sum of tx_ids %s', coalesce(found.txs, 0), coalesce(wrong, 0),
           coalesce(found.tx_ids, 0)) AS indexed,
       format('%s entries, 0 out of order, sum of tx_ids %s', coalesce(r.txs, 0), coalesce(r.tx_ids, 0)) AS recomputed
FROM found
FULL JOIN {recomputed} r USING ({owner_no})
LEFT JOIN {owner} USING ({owner_no})
WHERE coalesce(found.txs, 0) <> coalesce(r.txs, 0) OR coalesce(found.tx_ids, 0) <> coalesce(r.tx_ids, 0) OR wrong > 0
ORDER BY {owner_no}
LIMIT $1

-- name: check_account_withdrawal
WITH found AS (
    SELECT stake_no, count(*) AS txs, sum(tx_id) AS tx_ids,
           count(*) FILTER (WHERE seq <> place OR tx_id <= before) AS wrong,
           mod(sum(tx_id * lovelace), 2305843009213693951) AS weighted
    FROM (
        SELECT stake_no, seq, tx_id, lovelace,
               row_number() OVER in_order - 1 AS place, lag(tx_id) OVER in_order AS before
        FROM account_withdrawal_entry WINDOW in_order AS (PARTITION BY stake_no ORDER BY seq)
    ) numbered
    GROUP BY stake_no
), compared AS (
    SELECT stake_no,
           format('%s entries, %s out of order, sum of tx_ids %s, weighted by lovelace %s',
                  coalesce(found.txs, 0), coalesce(wrong, 0), coalesce(found.tx_ids, 0),
                      coalesce(found.weighted, 0)) AS indexed,
           format('%s entries, 0 out of order, sum of tx_ids %s, weighted by lovelace %s',
                  coalesce(r.withdrawals, 0), coalesce(r.withdrawal_tx_ids, 0),
                      coalesce(r.withdrawal_weighted, 0)) AS recomputed
    FROM found FULL JOIN recomputed_account r USING (stake_no)
)
SELECT 'account_withdrawal of' || CASE WHEN stake.raw IS NULL THEN ' stake_no ' || stake_no ELSE '' END AS what,
       stake.raw AS address, indexed, recomputed
FROM compared LEFT JOIN stake USING (stake_no)
WHERE indexed <> recomputed
ORDER BY stake_no
LIMIT $1

-- name: check_spender
-- Entries for outputs that do not exist, and slots whose entries are not in the order of spending. spenders.py compares
-- the entries with inputs.
SELECT format('spender of output %s of tx_id %s', output_index, tx_id) AS what, NULL::bytea AS address,
       format('tx_id %s', spender_tx_id) AS indexed, NULL AS recomputed
FROM spender_entry LEFT JOIN tx USING (tx_id) LEFT JOIN genesis_output g USING (tx_id)
WHERE tx.hash IS NULL AND g.tx_hash IS NULL
UNION ALL
SELECT 'spender of the outputs of slot ' || slot_no, NULL, 'not in the order of spending', 'in order'
FROM spender
WHERE EXISTS (
    SELECT FROM generate_series(1, length(entries) / 12 - 1) AS place
    WHERE tx_id_at(entries, place * 12) < tx_id_at(entries, place * 12 - 12)
)
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

-- name: check_utxo
-- With dropped_output, which is compared with the rows of utxo.
WITH recomputed AS (
    SELECT tx_id, output_index, part.address_no,
           format('%s lovelace, address_no %s, stake_no %s, asset_nos %s', lovelace, part.address_no, stake_no,
               asset_nos) AS says
    FROM utxo_part part LEFT JOIN address USING (address_no)
), indexed AS (
    SELECT tx_id, output_index, address_no,
           format('%s lovelace, address_no %s, stake_no %s, asset_nos %s', lovelace, address_no, stake_no,
               asset_nos) AS says
    FROM left_output
)
SELECT format('utxo %s#%s of', coalesce(encode(coalesce(tx.hash, g.tx_hash), 'hex'), 'tx_id ' || tx_id),
       output_index) AS what,
       address.raw AS address, indexed.says AS indexed, recomputed.says AS recomputed
FROM indexed FULL JOIN recomputed USING (tx_id, output_index)
LEFT JOIN tx USING (tx_id)
LEFT JOIN genesis_output g USING (tx_id)
LEFT JOIN address ON address.address_no = coalesce(recomputed.address_no, indexed.address_no)
WHERE indexed.says IS DISTINCT FROM recomputed.says
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

-- name: check_asset_tx
WITH found AS (
    SELECT asset_no, count(*) AS txs, sum(tx_id) AS tx_ids,
           count(*) FILTER (WHERE seq <> place OR tx_id <= before) AS wrong,
           mod(sum(tx_id * quantity), 2305843009213693951) AS weighted
    FROM (
        SELECT asset_no, seq, tx_id, quantity,
               row_number() OVER in_order - 1 AS place, lag(tx_id) OVER in_order AS before
        FROM asset_tx_entry WINDOW in_order AS (PARTITION BY asset_no ORDER BY seq)
    ) numbered
    GROUP BY asset_no
), compared AS (
    SELECT asset_no,
           format('%s entries, %s out of order, sum of tx_ids %s, weighted by quantity %s',
                  coalesce(found.txs, 0), coalesce(wrong, 0), coalesce(found.tx_ids, 0),
                      coalesce(found.weighted, 0)) AS indexed,
           format('%s entries, 0 out of order, sum of tx_ids %s, weighted by quantity %s',
                  coalesce(r.txs, 0), coalesce(r.tx_ids, 0), coalesce(r.weighted, 0)) AS recomputed
    FROM found FULL JOIN recomputed_asset r USING (asset_no)
)
SELECT 'asset_tx of asset '
    || coalesce(encode(policy.policy_id, 'hex') || '.' || encode(asset.name, 'hex'), 'number ' || asset_no) AS what,
       NULL::bytea AS address, indexed, recomputed
FROM compared LEFT JOIN asset USING (asset_no) LEFT JOIN policy USING (policy_no)
WHERE indexed <> recomputed
ORDER BY asset_no
LIMIT $1

-- name: check_mint
WITH found AS (
    SELECT asset_no, count(*) AS txs, sum(tx_id) AS tx_ids,
           count(*) FILTER (WHERE seq <> place OR tx_id <= before) AS wrong,
           mod(mod(sum(tx_id * coalesce(large, quantity)), 2305843009213693951) + 2305843009213693951,
               2305843009213693951) AS weighted,
           count(*) FILTER (WHERE named) AS named, coalesce(sum(tx_id) FILTER (WHERE named), 0) AS named_tx_ids
    FROM (
        SELECT asset_no, seq, tx_id, quantity, large, named,
               row_number() OVER in_order - 1 AS place, lag(tx_id) OVER in_order AS before
        FROM mint WINDOW in_order AS (PARTITION BY asset_no ORDER BY seq)
    ) numbered
    GROUP BY asset_no
), compared AS (
    SELECT asset_no,
           format('%s entries, %s out of order, sum of tx_ids %s, weighted by quantity %s, '
                  '%s named, sum of their tx_ids %s',
                  coalesce(found.txs, 0), coalesce(wrong, 0), coalesce(found.tx_ids, 0), coalesce(found.weighted, 0),
                      coalesce(found.named, 0), coalesce(found.named_tx_ids, 0)) AS indexed,
           format('%s entries, 0 out of order, sum of tx_ids %s, weighted by quantity %s, '
                  '%s named, sum of their tx_ids %s',
                  coalesce(r.mints + r.burns, 0), coalesce(r.mint_tx_ids, 0), coalesce(r.mint_weighted, 0),
                      coalesce(r.named, 0), coalesce(r.named_tx_ids, 0)) AS recomputed
    FROM found FULL JOIN recomputed_asset r USING (asset_no)
)
SELECT 'mint of asset '
    || coalesce(encode(policy.policy_id, 'hex') || '.' || encode(asset.name, 'hex'), 'number ' || asset_no) AS what,
       NULL::bytea AS address, indexed, recomputed
FROM compared LEFT JOIN asset USING (asset_no) LEFT JOIN policy USING (policy_no)
WHERE indexed <> recomputed
ORDER BY asset_no
LIMIT $1

-- name: check_holder
SELECT 'asset ' || coalesce(encode(policy.policy_id, 'hex') || '.' || encode(asset.name, 'hex'), 'number ' || asset_no)
    || ' held by' AS what,
       address.raw AS address, h.quantity::text AS indexed, r.quantity::text AS recomputed
FROM holder h
FULL JOIN recomputed_holder r USING (asset_no, address_no)
LEFT JOIN asset USING (asset_no)
LEFT JOIN policy ON policy.policy_no = asset.policy_no
LEFT JOIN address USING (address_no)
WHERE h.quantity IS DISTINCT FROM r.quantity
ORDER BY asset_no, address_no
LIMIT $1

-- name: check_policy_holder
SELECT 'policy ' || coalesce(encode(policy.policy_id, 'hex'), 'number ' || policy_no) || ' held by' AS what,
       address.raw AS address, h.quantity::text AS indexed, r.quantity::text AS recomputed
FROM policy_holder h
FULL JOIN (
    SELECT policy_no, address_no, sum(quantity) AS quantity FROM recomputed_holder GROUP BY policy_no, address_no
) r USING (policy_no, address_no)
LEFT JOIN policy USING (policy_no)
LEFT JOIN address USING (address_no)
WHERE h.quantity IS DISTINCT FROM r.quantity
ORDER BY policy_no, address_no
LIMIT $1

-- name: check_account_holder
SELECT 'asset ' || coalesce(encode(policy.policy_id, 'hex') || '.' || encode(asset.name, 'hex'), 'number ' || asset_no)
           || format(' held by account_no %s', account_no) AS what,
       coalesce(stake.raw, address.raw) AS address, h.quantity::text AS indexed, r.quantity::text AS recomputed
FROM account_holder h
FULL JOIN (
    SELECT asset_no, coalesce(stake_no, -address_no) AS account_no, sum(quantity) AS quantity
    FROM recomputed_holder LEFT JOIN address USING (address_no)
    GROUP BY 1, 2
) r USING (asset_no, account_no)
LEFT JOIN asset USING (asset_no)
LEFT JOIN policy ON policy.policy_no = asset.policy_no
LEFT JOIN stake ON stake.stake_no = account_no
LEFT JOIN address ON address.address_no = -account_no
WHERE h.quantity IS DISTINCT FROM r.quantity
ORDER BY asset_no, account_no
LIMIT $1

-- name: check_policy_account_holder
SELECT 'policy ' || coalesce(encode(policy.policy_id, 'hex'), 'number ' || policy_no)
           || format(' held by account_no %s', account_no) AS what,
       coalesce(stake.raw, address.raw) AS address, h.quantity::text AS indexed, r.quantity::text AS recomputed
FROM policy_account_holder h
FULL JOIN (
    SELECT policy_no, coalesce(stake_no, -address_no) AS account_no, sum(quantity) AS quantity
    FROM recomputed_holder LEFT JOIN address USING (address_no)
    GROUP BY 1, 2
) r USING (policy_no, account_no)
LEFT JOIN policy USING (policy_no)
LEFT JOIN stake ON stake.stake_no = account_no
LEFT JOIN address ON address.address_no = -account_no
WHERE h.quantity IS DISTINCT FROM r.quantity
ORDER BY policy_no, account_no
LIMIT $1

-- name: check_stake
SELECT 'balance of stake credential '
    || coalesce(encode(coalesce(stake.raw, r.raw), 'hex'), 'number ' || stake_no) AS what,
       NULL::bytea AS address,
       stake.balance::text AS indexed, coalesce(r.lovelace, 0)::text AS recomputed
FROM stake FULL JOIN recomputed_stake r USING (stake_no)
WHERE coalesce(stake.balance, 0) <> coalesce(r.lovelace, 0)
ORDER BY stake_no
LIMIT $1

-- name: check_address_count
-- An address counts if it has a transaction or is in the genesis.
SELECT 'address_count of stake credential ' || encode(raw, 'hex') AS what, NULL::bytea AS address,
       address_count::text AS indexed, coalesce(counted.addresses, 0)::text AS recomputed
FROM stake LEFT JOIN (
    SELECT stake_no, count(*) AS addresses FROM address
    WHERE address_no IN (SELECT address_no FROM recomputed_address) OR raw IN (SELECT address FROM genesis_output)
    GROUP BY stake_no
) counted USING (stake_no)
WHERE address_count <> coalesce(counted.addresses, 0)
ORDER BY stake_no
LIMIT $1

-- name: check_reference_output
WITH spent AS (
    SELECT DISTINCT tx.tx_id AS made, part.output_index, part.tx_id AS spent_tx_id
    FROM spent_part part JOIN tx ON tx.hash = part.tx_hash
), recomputed AS (
    SELECT part.asset_no, part.tx_id, part.output_index, coalesce(spent.spent_tx_id, 0) AS spent_tx_id
    FROM reference_part part
    LEFT JOIN spent ON spent.made = part.tx_id AND spent.output_index = part.output_index
)
SELECT format('spending of reference token number %s in output %s of tx_id %s', asset_no, output_index, tx_id) AS what,
       NULL::bytea AS address, coalesce(r.spent_tx_id, 0)::text AS indexed, recomputed.spent_tx_id::text AS recomputed
FROM (SELECT asset_no, tx_id, output_index, coalesce(spent_tx_id, 0) AS spent_tx_id, true AS found
    FROM reference_output) r
FULL JOIN recomputed USING (asset_no, tx_id, output_index)
WHERE r.spent_tx_id IS DISTINCT FROM recomputed.spent_tx_id
ORDER BY tx_id, output_index, asset_no
LIMIT $1
