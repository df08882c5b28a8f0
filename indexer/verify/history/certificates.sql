-- The stored changes of certificates in transactions from tx_id $1 to before $2. `place` counts the changes of a
-- transaction.

-- name: stake_events
SELECT tx_id, place, kind, raw AS account, pool_id
FROM stake_event JOIN stake USING (stake_no) LEFT JOIN pool ON pool.pool_no = stake_event.pool_no
WHERE tx_id >= $1 AND tx_id < $2

-- name: vote_delegations
SELECT tx_id, place, raw AS account, kind, representative
FROM vote_delegation JOIN stake USING (stake_no)
WHERE tx_id >= $1 AND tx_id < $2 AND kind IN ('delegation', 'deregistration')

-- name: representative_events
SELECT tx_id, place, kind, lovelace, representative, anchor_url, anchor_hash
FROM representative_event WHERE tx_id >= $1 AND tx_id < $2

-- name: pool_updates
SELECT tx_id, place, pool_id, parameters FROM pool_update JOIN pool USING (pool_no) WHERE tx_id >= $1 AND tx_id < $2

-- name: pool_reward_accounts
SELECT tx_id, place, pool_id, raw AS account
FROM pool_reward_account JOIN pool USING (pool_no) JOIN stake USING (stake_no) WHERE tx_id >= $1 AND tx_id < $2

-- name: pool_retirements
SELECT tx_id, place, pool_id, epoch_no FROM pool_retirement JOIN pool USING (pool_no) WHERE tx_id >= $1 AND tx_id < $2

-- name: instantaneous_rewards
-- Here `place` is that of the certificate in the transaction's CBOR.
SELECT tx_id, place, raw AS account, pot, lovelace
FROM instantaneous_reward JOIN stake USING (stake_no) WHERE tx_id >= $1 AND tx_id < $2
