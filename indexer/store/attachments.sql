-- Datums and scripts, each by its hash.

-- name: add_datums
-- Only those whose hash is missing: a row keeps the first transaction that showed its datum.
INSERT INTO datum (hash, tx_id, body)
SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS shown (hash, tx_id, body)
WHERE NOT EXISTS (SELECT FROM datum WHERE datum.hash = shown.hash)

-- name: add_scripts
-- The same, numbered after those that are there.
INSERT INTO script (hash, tx_id, language, body, seq)
SELECT hash, tx_id, language, body,
       coalesce((SELECT max(seq) FROM script), -1) + row_number() OVER (ORDER BY tx_id, hash)
FROM unnest($1::bytea[], $2::bigint[], $3::smallint[], $4::bytea[]) AS shown (hash, tx_id, language, body)
WHERE NOT EXISTS (SELECT FROM script WHERE script.hash = shown.hash)
