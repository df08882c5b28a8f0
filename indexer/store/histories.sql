-- The packed histories. All chunks of a history except the last are full. {history} is a table, {owner_no} its column
-- with the number of the address, account, asset or label or the key of the script, of the type {number}, {entries}
-- that with the packed entries, {width} the bytes of one; {numbers}, {counts} and {added} are arguments.

-- name: change_histories
-- Returns the addresses that had no entry before (used is 1), and those that have none left (-1); and the addresses and
-- accounts whose history was or is long.
WITH {addresses}, {accounts}, {assets}, {withdrawals}, {labels}, {credentials}, {redeemers}
SELECT is_account, owner_no,
       CASE WHEN is_account OR (before = 0) = (after = 0) THEN 0 WHEN before = 0 THEN 1 ELSE -1 END AS used,
       was_long, is_long
FROM (
    SELECT false AS is_account, owner_no, before, after, is_long_history(before) AS was_long,
           is_long_history(after) AS is_long
    FROM address_tx_changed
    UNION ALL
    SELECT true, owner_no, before, after, is_long_history(before), is_long_history(after) FROM account_tx_changed
) changed
WHERE was_long OR is_long OR (NOT is_account AND (before = 0) <> (after = 0))

-- name: change_history
-- A part of change_histories. Of the histories of {numbers}, cut the last {counts} entries off, then add {added}.
{history}_changed AS MATERIALIZED (
    SELECT owner_no, added, before, kept, kept + length(added) / {width} AS after, last_chunk,
           CASE WHEN kept >> 6 = last_chunk THEN last_ctid WHEN kept >> 6 < last_chunk THEN (
               SELECT ctid FROM {history} h WHERE h.{owner_no} = owner_no AND h.chunk = kept >> 6
           ) END AS filled_ctid
    FROM (
        SELECT owner_no, added, coalesce(length, 0) AS before, coalesce(length, 0) - cut AS kept,
               coalesce(chunk, -1) AS last_chunk, last_ctid
        FROM unnest({numbers}::{number}[], {counts}::integer[], {added}::bytea[]) AS changed (owner_no, cut, added)
        LEFT JOIN LATERAL (
            SELECT ctid AS last_ctid, chunk, (chunk << 6) + length({entries}) / {width} AS length
            FROM {history} h WHERE h.{owner_no} = owner_no ORDER BY chunk DESC LIMIT 1
        ) last ON true
    ) lengths
), {history}_filled AS (
    UPDATE {history} h SET
        {entries} = substr(h.{entries}, 1, (kept & 63) * {width}) || substr(added, 1, (64 - (kept & 63)) * {width})
    FROM {history}_changed WHERE h.ctid = filled_ctid AND after > kept >> 6 << 6
), {history}_continued AS (
    INSERT INTO {history} ({owner_no}, chunk, {entries})
    SELECT owner_no, chunk, substr(added, 1 + ((chunk << 6) - kept) * {width}, 64 * {width})
    FROM {history}_changed
    CROSS JOIN LATERAL generate_series((kept >> 6) + (filled_ctid IS NOT NULL)::integer, after - 1 >> 6) AS chunk
    WHERE after - 1 >> 6 > last_chunk OR kept >> 6 < last_chunk
    ON CONFLICT ({owner_no}, chunk) DO UPDATE SET {entries} = excluded.{entries}
), {history}_removed AS (
    DELETE FROM {history} h USING {history}_changed
    WHERE h.{owner_no} = owner_no AND chunk > after - 1 >> 6 AND last_chunk > after - 1 >> 6
)
