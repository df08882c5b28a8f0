-- name: split
-- The networks whose chain is split: a row or few in all.
SELECT DISTINCT network_id::bigint AS network_id FROM partner.chain_split
