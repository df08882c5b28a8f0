-- name: tips
-- The tip of each network's index on a server, in any phase; no row for a network without an index.
SELECT 0::bigint AS network_id, slot_no FROM chain_mainnet.tip
UNION ALL
SELECT 1::bigint, slot_no FROM chain_preview.tip
UNION ALL
SELECT 2::bigint, slot_no FROM chain_preprod.tip
