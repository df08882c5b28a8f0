-- name: tips
-- The tip of each network's index on a server, in any phase; no row for a network without an index.
{each}

-- name: tip_of
SELECT {network_id}::bigint AS network_id, slot_no FROM {schema}.tip
