-- The history of a stake account by transaction and address.

-- name: stake_no
-- The number of an account $1.
SELECT stake_no FROM stake WHERE raw = $1

-- name: span
-- How many transactions of the account with number $1 are below tx_id $2, and below $3. Cost: two binary searches.
SELECT account_tx_rank($1, $2) AS first, account_tx_rank($1, $3) AS beyond

-- name: rank
-- How many transactions of the account with number $1 are below tx_id $2, and how many entries of the histories of its
-- addresses. Cost: a binary search in the history of each of its addresses.
SELECT account_tx_rank($1, $2) AS transactions, (
    SELECT coalesce(sum(address_tx_rank(address_no, $2)), 0)::bigint FROM address WHERE stake_no = $1
) AS entries

-- name: tx_id
-- The transaction with the number $2 in the history of the account with number $1.
SELECT tx_id FROM account_tx_range($1, $2, $2)

-- name: transactions
-- The transactions with the numbers $2 to $3 in the history of the account with number $1, in order.
SELECT entry.tx_id, tx.hash, tx.inputs, tx.outputs
FROM account_tx_range($1, $2, $3) entry
CROSS JOIN LATERAL (SELECT hash, inputs, outputs FROM tx WHERE tx.tx_id = entry.tx_id LIMIT 1) tx
ORDER BY entry.seq

-- name: addresses
-- Those of the addresses $2 that belong to the account with number $1. Cost: a look-up each.
SELECT address_no, raw FROM address WHERE address_no = ANY ($2::integer[]) AND stake_no = $1
