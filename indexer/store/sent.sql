-- What addresses and accounts with long histories have spent, and payment credentials. {sent} is the table, {owner_no}
-- its column with the number of the owner, {history} the table of the owners' histories.

-- name: move_sent
-- Delete the rows of owners $1, whose histories are no longer long, and add the quantities ($4, as text) of assets $3
-- spent by the owners $2; no row stays at 0.
WITH moved AS MATERIALIZED (
    SELECT m.{owner_no}, m.asset_no, s.ctid AS row_ctid, coalesce(s.quantity, 0) + m.quantity::numeric AS quantity
    FROM unnest($2::integer[], $3::integer[], $4::text[]) AS m ({owner_no}, asset_no, quantity)
    LEFT JOIN {sent} s ON s.{owner_no} = m.{owner_no} AND s.asset_no = m.asset_no
), ended AS (
    DELETE FROM {sent} WHERE {owner_no} = ANY ($1::integer[])
), removed AS (
    DELETE FROM {sent} s USING moved m WHERE s.ctid = m.row_ctid AND m.quantity = 0
), changed AS (
    UPDATE {sent} s SET quantity = m.quantity FROM moved m WHERE s.ctid = m.row_ctid AND m.quantity <> 0
)
INSERT INTO {sent} ({owner_no}, asset_no, quantity) SELECT {owner_no}, asset_no, quantity FROM moved
WHERE row_ctid IS NULL

-- name: transactions
-- The transactions of owners $1, with what each spends.
SELECT h.{owner_no} AS owner, inputs FROM {history}_entry h JOIN tx USING (tx_id)
WHERE h.{owner_no} = ANY ($1::integer[])

-- name: accounts
-- The accounts of those of the addresses $1 that have one.
SELECT address_no, stake_no FROM address WHERE address_no = ANY ($1::integer[]) AND stake_no IS NOT NULL
