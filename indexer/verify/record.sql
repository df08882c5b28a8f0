-- name: keep
INSERT INTO partner.verification (network_id, began_at, ended_at, slot_no, block_no, node_blocks, differing)
VALUES ($1, $2, clock_timestamp(), $3, $4, $5, $6)
ON CONFLICT (network_id) DO UPDATE SET
    began_at = excluded.began_at, ended_at = excluded.ended_at, slot_no = excluded.slot_no,
        block_no = excluded.block_no,
    node_blocks = excluded.node_blocks, differing = excluded.differing

-- name: due
-- Seconds until $2 seconds have passed since the recorded verification of network $1 began, by the database's clock.
-- Zero or less: it is due. No row: none is recorded.
SELECT $2::float8 - extract(epoch FROM clock_timestamp() - began_at)::float8 AS in_s
FROM partner.verification
WHERE network_id = $1
