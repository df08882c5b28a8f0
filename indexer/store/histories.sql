-- The packed histories. All chunks of a history except the last are full.

-- name: add_entries
-- Add entries to chunks, or begin chunks with them, and count the chunks that had entries before. Each history has four
-- columns: numbers of addresses, accounts or assets, chunks, whether they begin with these entries, and the entries.
WITH address AS MATERIALIZED (
    SELECT * FROM unnest($1::integer[], $2::integer[], $3::boolean[], $4::bytea[]) AS added (address_no, chunk, begins, tx_ids)
), account AS MATERIALIZED (
    SELECT * FROM unnest($5::integer[], $6::integer[], $7::boolean[], $8::bytea[]) AS added (stake_no, chunk, begins, tx_ids)
), asset AS MATERIALIZED (
    SELECT * FROM unnest($9::integer[], $10::integer[], $11::boolean[], $12::bytea[]) AS added (asset_no, chunk, begins, entries)
), withdrawal AS MATERIALIZED (
    SELECT * FROM unnest($13::integer[], $14::integer[], $15::boolean[], $16::bytea[]) AS added (stake_no, chunk, begins, entries)
), address_begun AS (
    INSERT INTO address_tx (address_no, chunk, tx_ids) SELECT address_no, chunk, tx_ids FROM address WHERE begins
), account_begun AS (
    INSERT INTO account_tx (stake_no, chunk, tx_ids) SELECT stake_no, chunk, tx_ids FROM account WHERE begins
), asset_begun AS (
    INSERT INTO asset_tx (asset_no, chunk, entries) SELECT asset_no, chunk, entries FROM asset WHERE begins
), withdrawal_begun AS (
    INSERT INTO account_withdrawal (stake_no, chunk, entries) SELECT stake_no, chunk, entries FROM withdrawal WHERE begins
), address_grown AS (
    UPDATE address_tx h SET tx_ids = h.tx_ids || a.tx_ids FROM address a
    WHERE h.address_no = a.address_no AND h.chunk = a.chunk AND NOT a.begins
    RETURNING true
), account_grown AS (
    UPDATE account_tx h SET tx_ids = h.tx_ids || a.tx_ids FROM account a
    WHERE h.stake_no = a.stake_no AND h.chunk = a.chunk AND NOT a.begins
    RETURNING true
), asset_grown AS (
    UPDATE asset_tx h SET entries = h.entries || a.entries FROM asset a
    WHERE h.asset_no = a.asset_no AND h.chunk = a.chunk AND NOT a.begins
    RETURNING true
), withdrawal_grown AS (
    UPDATE account_withdrawal h SET entries = h.entries || a.entries FROM withdrawal a
    WHERE h.stake_no = a.stake_no AND h.chunk = a.chunk AND NOT a.begins
    RETURNING true
)
SELECT (SELECT count(*) FROM address_grown) + (SELECT count(*) FROM account_grown) + (SELECT count(*) FROM asset_grown)
       + (SELECT count(*) FROM withdrawal_grown) AS chunks

-- name: cut_entries
-- Cut the last entries off histories. Each has two columns: numbers of addresses, accounts or assets, and how many entries.
-- Returns the addresses that have none left. Most histories lose no chunk; they are not searched for chunks to delete.
WITH address AS MATERIALIZED (
    SELECT address_no, last.length - entries AS length, chunk AS last_chunk
    FROM unnest($1::integer[], $2::integer[]) AS undone (address_no, entries) CROSS JOIN LATERAL (
        SELECT chunk, (chunk << 6) + length(tx_ids) / 8 AS length FROM address_tx h
        WHERE h.address_no = undone.address_no ORDER BY chunk DESC LIMIT 1
    ) last
), account AS MATERIALIZED (
    SELECT stake_no, last.length - entries AS length, chunk AS last_chunk
    FROM unnest($3::integer[], $4::integer[]) AS undone (stake_no, entries) CROSS JOIN LATERAL (
        SELECT chunk, (chunk << 6) + length(tx_ids) / 8 AS length FROM account_tx h
        WHERE h.stake_no = undone.stake_no ORDER BY chunk DESC LIMIT 1
    ) last
), asset AS MATERIALIZED (
    SELECT asset_no, last.length - undone.entries AS length, chunk AS last_chunk
    FROM unnest($5::integer[], $6::integer[]) AS undone (asset_no, entries) CROSS JOIN LATERAL (
        SELECT chunk, (chunk << 6) + length(h.entries) / 18 AS length FROM asset_tx h
        WHERE h.asset_no = undone.asset_no ORDER BY chunk DESC LIMIT 1
    ) last
), withdrawal AS MATERIALIZED (
    SELECT stake_no, last.length - undone.entries AS length, chunk AS last_chunk
    FROM unnest($7::integer[], $8::integer[]) AS undone (stake_no, entries) CROSS JOIN LATERAL (
        SELECT chunk, (chunk << 6) + length(h.entries) / 18 AS length FROM account_withdrawal h
        WHERE h.stake_no = undone.stake_no ORDER BY chunk DESC LIMIT 1
    ) last
), address_removed AS (
    DELETE FROM address_tx h USING address a
    WHERE h.address_no = a.address_no AND h.chunk >= a.length + 63 >> 6 AND a.last_chunk >= a.length + 63 >> 6
), account_removed AS (
    DELETE FROM account_tx h USING account a
    WHERE h.stake_no = a.stake_no AND h.chunk >= a.length + 63 >> 6 AND a.last_chunk >= a.length + 63 >> 6
), asset_removed AS (
    DELETE FROM asset_tx h USING asset a
    WHERE h.asset_no = a.asset_no AND h.chunk >= a.length + 63 >> 6 AND a.last_chunk >= a.length + 63 >> 6
), withdrawal_removed AS (
    DELETE FROM account_withdrawal h USING withdrawal a
    WHERE h.stake_no = a.stake_no AND h.chunk >= a.length + 63 >> 6 AND a.last_chunk >= a.length + 63 >> 6
), address_cut AS (
    UPDATE address_tx h SET tx_ids = substr(h.tx_ids, 1, (a.length & 63) * 8) FROM address a
    WHERE h.address_no = a.address_no AND h.chunk = a.length >> 6 AND a.length & 63 > 0
), account_cut AS (
    UPDATE account_tx h SET tx_ids = substr(h.tx_ids, 1, (a.length & 63) * 8) FROM account a
    WHERE h.stake_no = a.stake_no AND h.chunk = a.length >> 6 AND a.length & 63 > 0
), asset_cut AS (
    UPDATE asset_tx h SET entries = substr(h.entries, 1, (a.length & 63) * 18) FROM asset a
    WHERE h.asset_no = a.asset_no AND h.chunk = a.length >> 6 AND a.length & 63 > 0
), withdrawal_cut AS (
    UPDATE account_withdrawal h SET entries = substr(h.entries, 1, (a.length & 63) * 18) FROM withdrawal a
    WHERE h.stake_no = a.stake_no AND h.chunk = a.length >> 6 AND a.length & 63 > 0
)
SELECT address_no FROM address WHERE length = 0
