-- What rows need to know, a batch at a time: each statement costs one index look-up per element of its array.

-- name: sources
-- The packed outputs of transactions by hash.
SELECT tx.hash, tx.outputs FROM unnest($1::bytea[]) AS wanted (hash) JOIN tx ON tx.hash = wanted.hash

-- name: genesis_sources
-- Genesis outputs by the hash under which they are spent.
SELECT g.tx_hash, g.address, g.lovelace
FROM unnest($1::bytea[]) AS wanted (hash) JOIN genesis_output g ON g.tx_hash = wanted.hash

-- name: addresses
SELECT a.raw, a.address_id FROM unnest($1::bytea[]) AS wanted (raw) JOIN address a ON a.raw = wanted.raw

-- name: stakes
SELECT s.raw, s.stake_id FROM unnest($1::bytea[]) AS wanted (raw) JOIN stake s ON s.raw = wanted.raw

-- name: pools
SELECT p.hash, p.pool_id FROM unnest($1::bytea[]) AS wanted (hash) JOIN pool p ON p.hash = wanted.hash

-- name: policies
SELECT p.hash, p.policy_id FROM unnest($1::bytea[]) AS wanted (hash) JOIN policy p ON p.hash = wanted.hash

-- name: assets
-- By policy hash and name in one byte string. Each name is a look-up of its own: joined, Postgres may read all assets of a
-- policy for each of its names.
SELECT key, asset_id
FROM (
    SELECT wanted.key,
           (SELECT a.asset_id FROM asset a WHERE a.policy_id = p.policy_id AND a.name = substring(wanted.key FROM 29)) AS asset_id
    FROM unnest($1::bytea[]) AS wanted (key)
    JOIN policy p ON p.hash = substring(wanted.key FOR 28)
) looked_up
WHERE asset_id IS NOT NULL

-- name: address_lengths
-- How many transactions each address has: one probe at the end of its history.
SELECT wanted.id, coalesce((SELECT max(seq) + 1 FROM address_tx WHERE address_id = wanted.id), 0)
FROM unnest($1::integer[]) AS wanted (id)

-- name: asset_lengths
SELECT wanted.id, coalesce((SELECT max(seq) + 1 FROM asset_tx WHERE asset_id = wanted.id), 0)
FROM unnest($1::integer[]) AS wanted (id)

-- name: mint_lengths
SELECT wanted.id, coalesce((SELECT max(seq) + 1 FROM mint WHERE asset_id = wanted.id), 0)
FROM unnest($1::integer[]) AS wanted (id)

-- name: next_numbers
-- The first number not given yet, of each kind.
SELECT (SELECT coalesce(max(address_id), 0) + 1 FROM address), (SELECT coalesce(max(stake_id), 0) + 1 FROM stake),
       (SELECT coalesce(max(pool_id), 0) + 1 FROM pool), (SELECT coalesce(max(policy_id), 0) + 1 FROM policy),
       (SELECT coalesce(max(asset_id), 0) + 1 FROM asset)
