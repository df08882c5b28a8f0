-- name: registered_before
-- For each of the pools $1, its last certificate before transaction $2 that registered it, and the last epoch up to $3
-- at whose start it was retired. `partial`: the index begins after the genesis.
SELECT pool.pool_id, (
           SELECT tx_id FROM pool_update WHERE pool_update.pool_no = pool.pool_no AND tx_id < $2
           ORDER BY tx_id DESC LIMIT 1
       ) AS tx_id, (
           SELECT max(epoch_no) FROM pool_reaping WHERE pool_reaping.pool_no = pool.pool_no AND epoch_no <= $3
       ) AS retired_epoch_no, (SELECT first_block_no > 0 FROM tip) AS partial
FROM pool
WHERE pool.pool_id = ANY ($1::bytea[])
