-- The comparison with the node in each epoch.

-- name: last
-- The epoch of the last comparison; the last one compares the epochs' starts, too, so it has a row at least.
SELECT epoch_no FROM node_comparison LIMIT 1

-- name: forget
DELETE FROM node_comparison

-- name: store
INSERT INTO node_comparison (kind, slot_no, epoch_no, compared, differing, differences) VALUES ($1, $2, $3, $4, $5, $6::text::json)
