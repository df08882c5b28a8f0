-- name: oldest
-- The oldest transaction, address, asset, registered pool and stake account, which stay the same. Nulls if there are
-- none, no row if the network is not served. Cost: the first row of seven indexes.
SELECT first_tx.hash AS tx_hash, first_address.raw AS address, first_asset.policy_id, first_asset.name AS asset_name,
       first_pool.pool_id, (SELECT raw FROM stake ORDER BY stake_no LIMIT 1) AS account
FROM tip
LEFT JOIN (SELECT hash FROM tx ORDER BY tx_id LIMIT 1) first_tx ON true
LEFT JOIN (SELECT raw FROM address_tx JOIN address USING (address_no) ORDER BY address_no, chunk LIMIT 1) first_address
    ON true
LEFT JOIN (
    SELECT policy.policy_id, asset.name
    FROM asset JOIN policy USING (policy_no)
    WHERE first_tx_id IS NOT NULL
    ORDER BY asset_no
    LIMIT 1
) first_asset ON true
LEFT JOIN (
    SELECT pool_id FROM pool_update JOIN pool USING (pool_no) ORDER BY pool_no, tx_id, place LIMIT 1
) first_pool ON true
WHERE tip.phase = 'live'
