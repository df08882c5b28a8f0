-- Unspent outputs, and the lists of them by address, by account and by payment credential. {owner_no} is address_no,
-- stake_no or credential_no, {utxo_bucket} and {utxo_asset} are the tables of long lists. The buckets of a list tell
-- whether it is long (buckets.sql).

-- name: remove
-- Outputs by address_no, tx_id and output_index.
DELETE FROM utxo u USING unnest($1::integer[], $2::bigint[], $3::integer[]) AS removed (address_no, tx_id, output_index)
WHERE u.address_no = removed.address_no AND u.tx_id = removed.tx_id AND u.output_index = removed.output_index

-- name: change_spenders
-- Cut the last $2 entries off the rows of slots $1, then add $3. Rows without entries are deleted.
WITH changed AS MATERIALIZED (
    SELECT slot_no, s.ctid AS row_ctid,
           coalesce(substr(s.entries, 1, length(s.entries) - change.cut * 12), '') || change.added AS entries
    FROM unnest($1::bigint[], $2::integer[], $3::bytea[]) AS change (slot_no, cut, added)
        LEFT JOIN spender s USING (slot_no)
), begun AS (
    INSERT INTO spender (slot_no, entries) SELECT slot_no, entries FROM changed WHERE row_ctid IS NULL
), emptied AS (
    DELETE FROM spender s USING changed c WHERE s.ctid = c.row_ctid AND c.entries = ''
)
UPDATE spender s SET entries = c.entries FROM changed c WHERE s.ctid = c.row_ctid AND c.entries <> ''

-- name: cut_staged_spenders
-- Remove the entries of spending transactions from tx_id $1 on, which are the last of each row.
WITH removed AS (
    DELETE FROM spender_staged WHERE tx_id_at(entries, 0) >= $1
)
UPDATE spender_staged SET entries = substr(entries, 1, 12 * (
    SELECT count(*)::integer FROM generate_series(0, length(entries) / 12 - 1) AS place
        WHERE tx_id_at(entries, place * 12) < $1
))
WHERE tx_id_at(entries, 0) < $1 AND tx_id_at(entries, length(entries) - 12) >= $1

-- name: counted_lists
-- The lists of addresses $1, accounts $2 and payment credentials $3 that have buckets.
SELECT 'address_no' AS owner_column, owner FROM unnest($1::integer[]) AS list (owner)
WHERE EXISTS (SELECT FROM utxo_bucket b WHERE b.address_no = owner)
UNION ALL
SELECT 'stake_no', owner FROM unnest($2::integer[]) AS list (owner)
WHERE EXISTS (SELECT FROM account_utxo_bucket b WHERE b.stake_no = owner)
UNION ALL
SELECT 'credential_no', owner FROM unnest($3::integer[]) AS list (owner)
WHERE EXISTS (SELECT FROM credential_utxo_bucket b WHERE b.credential_no = owner)

-- name: move_assets
-- Runs before buckets move, for the lists of owners $1. $2 to $6 are the assets of outputs that are added ($6) or
-- removed.
WITH list AS MATERIALIZED (
    SELECT owner, {is_long} AS long, EXISTS (SELECT FROM {utxo_bucket} b WHERE b.{owner_no} = owner) AS counted
    FROM unnest($1::integer[]) AS list (owner)
), moved AS MATERIALIZED (
    SELECT moved.* FROM unnest($2::integer[], $3::integer[], $4::bigint[], $5::integer[], $6::boolean[])
        AS moved (owner, asset_no, tx_id, output_index, is_added)
    JOIN list USING (owner) WHERE long AND counted
), short AS (
    DELETE FROM {utxo_asset} a USING list WHERE a.{owner_no} = owner AND counted AND NOT long
), removed AS (
    DELETE FROM {utxo_asset} a USING moved m
    WHERE NOT is_added AND a.{owner_no} = m.owner AND a.asset_no = m.asset_no AND a.tx_id = m.tx_id
      AND a.output_index = m.output_index
)
INSERT INTO {utxo_asset} ({owner_no}, asset_no, tx_id, output_index)
SELECT owner, asset_no, tx_id, output_index FROM moved WHERE is_added
UNION ALL
SELECT owner, asset_no, u.tx_id, u.output_index
FROM list JOIN utxo u ON u.{owner_no} = owner CROSS JOIN unnest(u.asset_nos) AS asset_no
WHERE long AND NOT counted

-- name: listed
-- The rows of all lists of unspent outputs.
SELECT {owner_no} AS list_no, tx_id AS rank, output_index AS tie, opens_outputs(tx_id, output_index) AS opens, lovelace
FROM utxo WHERE {owner_no} IS NOT NULL

-- name: places
-- The outputs that are added to the lists of owners $1 ($4 is 1) or removed (-1).
SELECT list_no, rank, tie, opens_outputs(rank, tie) AS opens, outputs, lovelace
FROM unnest($1::integer[], $2::bigint[], $3::integer[], $4::integer[], $5::bigint[])
    AS moved (list_no, rank, tie, outputs, lovelace)

-- name: join_spenders
INSERT INTO spender (slot_no, entries)
SELECT slot_no, string_agg(entries, '' ORDER BY entries) FROM spender_staged GROUP BY slot_no ORDER BY slot_no

-- name: transactions_after
-- Transactions after tx_id $1, in order, at most $2.
SELECT tx_id, outputs FROM tx WHERE tx_id > $1 ORDER BY tx_id LIMIT $2

-- name: spenders_of
-- The spent outputs of slots $1 to $2.
SELECT slot_no, entries FROM spender WHERE slot_no BETWEEN $1 AND $2

-- name: genesis_outputs
-- The outputs of the genesis that are unspent, and the numbers of their addresses.
SELECT g.tx_id, g.lovelace, a.address_no, a.stake_no, a.credential_no
FROM genesis_output g JOIN address a ON a.raw = g.address
WHERE NOT EXISTS (SELECT FROM spender_entry s WHERE s.slot_no = g.tx_id >> 16 AND s.tx_id = g.tx_id)

-- name: fill_assets
-- Runs after the buckets are filled.
INSERT INTO {utxo_asset} ({owner_no}, asset_no, tx_id, output_index)
SELECT {owner_no}, asset_no, tx_id, output_index
FROM utxo CROSS JOIN unnest(asset_nos) AS asset_no
WHERE {owner_no} IN (SELECT {owner_no} FROM {utxo_bucket})
