-- The comparison with the node in each epoch.

-- name: tip
-- Our tip and the epoch of the last comparison, asked after every block.
SELECT slot_no, (SELECT epoch_no FROM node_comparison LIMIT 1) AS compared_epoch_no FROM tip

-- name: forget
DELETE FROM node_comparison

-- name: store
INSERT INTO node_comparison (kind, slot_no, epoch_no, compared, differing, differences)
VALUES ($1, $2, $3, $4, $5, $6::text::json)
