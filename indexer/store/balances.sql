-- Balances of stake credentials, and the counts of their addresses.

-- name: move_balances
-- Add lovelace $2 to balances $1. For the addresses $3, add $4 (1 or -1) to the counts of their accounts, except for
-- addresses of the genesis, which are counted already.
WITH moved AS (
    SELECT stake_no, sum(lovelace)::bigint AS lovelace, sum(addresses)::integer AS addresses
    FROM (
        SELECT stake_no, lovelace, 0 AS addresses
            FROM unnest($1::integer[], $2::bigint[]) AS balance (stake_no, lovelace)
        UNION ALL
        SELECT stake_no, 0, used.addresses
        FROM unnest($3::integer[], $4::integer[]) AS used (address_no, addresses) JOIN address USING (address_no)
        WHERE stake_no IS NOT NULL
          AND NOT EXISTS (SELECT FROM genesis_output WHERE genesis_output.address = address.raw)
    ) parts
    GROUP BY stake_no
)
UPDATE stake SET balance = stake.balance + moved.lovelace, address_count = address_count + moved.addresses
FROM moved
WHERE stake.stake_no = moved.stake_no

-- name: count_addresses
-- Count the addresses of all accounts: joins of whole tables, as a probe for each address would take longer.
UPDATE stake SET address_count = counted.addresses
FROM (
    SELECT stake_no, count(*) AS addresses
    FROM (
        SELECT address_no FROM address_tx WHERE chunk = 0
        UNION ALL
        SELECT address_no FROM genesis_output JOIN address ON raw = genesis_output.address
        WHERE NOT EXISTS (SELECT FROM address_tx WHERE address_tx.address_no = address.address_no)
    ) used
    JOIN address USING (address_no)
    WHERE stake_no IS NOT NULL
    GROUP BY stake_no
) counted
WHERE stake.stake_no = counted.stake_no AND stake.address_count <> counted.addresses

-- name: add_up_staged_balances
UPDATE stake SET balance = stake.balance + moved.lovelace
FROM (SELECT stake_no, sum(lovelace) AS lovelace FROM balance_staged GROUP BY stake_no) moved
WHERE stake.stake_no = moved.stake_no AND moved.lovelace <> 0
