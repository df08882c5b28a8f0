-- name: go_on
-- The split of node $2 of network $1 goes on; no row if it has just begun.
UPDATE partner.chain_split
SET slot_no = $3, block_no = $4, block_hash = $5, our_slot_no = $6, our_block_no = $7, our_block_hash = $8,
    node_slot_no = $9, node_block_no = $10, node_block_hash = $11
WHERE network_id = $1 AND node_no = $2

-- name: begin
INSERT INTO partner.chain_split (network_id, node_no, slot_no, block_no, block_hash, our_slot_no, our_block_no,
                                 our_block_hash, node_slot_no, node_block_no, node_block_hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
RETURNING node_no::bigint AS node, noticed_at, slot_no, block_no, block_hash, our_slot_no, our_block_no, our_block_hash,
          node_slot_no, node_block_no, node_block_hash

-- name: end
-- End the split of node $2 of network $1; no row if there is none.
DELETE FROM partner.chain_split WHERE network_id = $1 AND node_no = $2
RETURNING node_no::bigint AS node, noticed_at, slot_no, block_no, block_hash, our_slot_no, our_block_no, our_block_hash,
          node_slot_no, node_block_no, node_block_hash

-- name: open_nodes
SELECT node_no::bigint AS node_no FROM partner.chain_split WHERE network_id = $1 ORDER BY node_no
