-- The oldest of each thing that the chain has, so that it stays the same: a transaction, an asset, a registered pool. Nulls
-- where there is none, no row where the network is not served. Cost: the first row of four indexes.
-- name: oldest
SELECT first_tx.hash, first_tx.outputs, first_asset.policy, first_asset.name, first_pool.hash
FROM tip
LEFT JOIN (SELECT hash, outputs FROM tx ORDER BY tx_id LIMIT 1) first_tx ON true
LEFT JOIN (
    SELECT policy.hash AS policy, asset.name
    FROM asset JOIN policy USING (policy_id)
    WHERE first_tx_id IS NOT NULL
    ORDER BY asset_id
    LIMIT 1
) first_asset ON true
LEFT JOIN (
    SELECT hash FROM pool_update JOIN pool USING (pool_id) ORDER BY pool_id, tx_id, place LIMIT 1
) first_pool ON true
WHERE tip.phase = 'live'
