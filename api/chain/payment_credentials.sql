-- Payment credentials. What they own is in owners.sql, utxos.sql and transactions.sql.

-- name: first_address
-- The first address with the payment credential with the hash $1: one look-up.
SELECT raw FROM address WHERE payment_hash(raw) = $1 AND credential_no IS NULL
