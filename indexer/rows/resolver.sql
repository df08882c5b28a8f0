-- Look-ups for a batch of blocks: each statement costs one index look-up per element of its array.

-- name: sources
-- The packed outputs of transactions by hash.
SELECT tx.hash AS tx_hash, tx.tx_id, tx.outputs
FROM unnest($1::bytea[]) AS wanted (hash) JOIN tx ON tx.hash = wanted.hash

-- name: genesis_sources
-- Genesis outputs by the hash under which they are spent.
SELECT g.tx_hash, g.tx_id, g.address, g.lovelace
FROM unnest($1::bytea[]) AS wanted (hash) JOIN genesis_output g ON g.tx_hash = wanted.hash

-- name: addresses
-- An address without a row has a null for its number, and the first address with the same payment credential.
SELECT wanted.raw, a.address_no AS number, a.stake_no,
       CASE WHEN a.address_no IS NULL THEN (
           SELECT first.address_no FROM address first
           WHERE payment_hash(first.raw) = payment_hash(wanted.raw) AND first.credential_no IS NULL
       ) ELSE a.credential_no END AS credential_no
FROM unnest($1::bytea[]) AS wanted (raw) LEFT JOIN address a ON a.raw = wanted.raw

-- name: output_facts
-- The numbers of the credentials of addresses $1, and of the scripts that lock them, as far as they have any; the
-- reference tokens among assets $2, whose names begin with $3; and, with an index, those of the outputs $5 of
-- transactions $4 that have a reference script.
SELECT false AS is_asset, address_no::bigint AS number, stake_no, credential_no, NULL::integer AS output_index,
       script_key(raw) AS script_key
FROM address
WHERE address_no = ANY ($1::integer[])
  AND (stake_no IS NOT NULL OR credential_no IS NOT NULL OR script_key(raw) IS NOT NULL)
UNION ALL
SELECT true, asset_no, NULL, NULL, NULL, NULL FROM asset
WHERE asset_no = ANY ($2::integer[]) AND substring(name FOR 4) = $3
UNION ALL
SELECT false, tx_id, NULL, NULL, output_index, NULL
FROM unnest($4::bigint[], $5::integer[]) AS wanted (tx_id, output_index) JOIN script_output USING (tx_id, output_index)

-- name: stakes
SELECT s.raw, s.stake_no AS number FROM unnest($1::bytea[]) AS wanted (raw) JOIN stake s ON s.raw = wanted.raw

-- name: pools
SELECT p.pool_id AS raw, p.pool_no AS number FROM unnest($1::bytea[]) AS wanted (pool_id)
JOIN pool p ON p.pool_id = wanted.pool_id

-- name: policies
SELECT p.policy_id AS raw, p.policy_no AS number FROM unnest($1::bytea[]) AS wanted (policy_id)
JOIN policy p ON p.policy_id = wanted.policy_id

-- name: assets
-- By policy id and name in one byte string. Each name is a separate look-up: joined, Postgres may read all assets of a
-- policy for each of its names.
SELECT raw, asset_no AS number
FROM (
    SELECT wanted.raw,
           (SELECT a.asset_no FROM asset a WHERE a.policy_no = p.policy_no
               AND a.name = substring(wanted.raw FROM 29)) AS asset_no
    FROM unnest($1::bytea[]) AS wanted (raw)
    JOIN policy p ON p.policy_id = substring(wanted.raw FOR 28)
) looked_up
WHERE asset_no IS NOT NULL

-- name: first_free
-- The first unassigned number of each kind.
SELECT (SELECT coalesce(max(address_no), 0) + 1 FROM address) AS address_no,
       (SELECT coalesce(max(stake_no), 0) + 1 FROM stake) AS stake_no,
       (SELECT coalesce(max(pool_no), 0) + 1 FROM pool) AS pool_no,
       (SELECT coalesce(max(policy_no), 0) + 1 FROM policy) AS policy_no,
       (SELECT coalesce(max(asset_no), 0) + 1 FROM asset) AS asset_no
