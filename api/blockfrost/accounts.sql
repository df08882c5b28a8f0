-- Stake accounts.

-- name: certified
-- Whether an account $1 was ever used: by a transaction, a certificate or a reward. The epoch of the last certificate
-- that registered or ended it; null if there is none, or if it is part of the genesis. Reads certificates from the last
-- one back, and all of its instantaneous rewards, which ended with Babbage. The pool is that of the last delegation
-- since, even if the pool has been retired. `partial`: the index begins after the genesis. No row if the network is
-- not served.
SELECT EXISTS (SELECT FROM account_tx WHERE stake_no = asked.stake_no)
       OR EXISTS (SELECT FROM utxo WHERE stake_no = asked.stake_no)
       OR EXISTS (SELECT FROM stake_event WHERE stake_no = asked.stake_no)
       OR EXISTS (SELECT FROM vote_delegation WHERE stake_no = asked.stake_no)
       OR EXISTS (SELECT FROM account_withdrawal WHERE stake_no = asked.stake_no)
       OR EXISTS (SELECT FROM reward WHERE stake_no = asked.stake_no) OR moved.rows > 0 AS known, (
           SELECT CASE WHEN tx_id >= 0 THEN epoch_no END FROM stake_event
           WHERE stake_no = asked.stake_no AND kind <> 'delegation'
           ORDER BY tx_id DESC, place DESC LIMIT 1
       ) AS registration_epoch_no, (
           SELECT pool_id FROM stake JOIN pool USING (pool_no) WHERE stake.stake_no = asked.stake_no
       ) AS pool_id, moved.from_reserves, moved.from_treasury, asked.first_block_no > 0 AS partial
FROM (
    SELECT first_block_no, (SELECT stake_no FROM stake WHERE raw = $1) AS stake_no FROM tip WHERE phase = 'live'
) asked
CROSS JOIN LATERAL (
    SELECT count(*) AS rows,
           coalesce(sum(lovelace) FILTER (WHERE pot = 'reserves'), 0)::bigint AS from_reserves,
           coalesce(sum(lovelace) FILTER (WHERE pot = 'treasury'), 0)::bigint AS from_treasury
    FROM instantaneous_reward WHERE stake_no = asked.stake_no
) moved

-- name: withdrawn
-- The packed withdrawals of an account $1, in no order.
SELECT entries FROM account_withdrawal WHERE stake_no = (SELECT stake_no FROM stake WHERE raw = $1)

-- name: moved
-- A page of the instantaneous rewards of an account $1, oldest first or newest first; $2 limit, $3 offset. Each page
-- reads those before it: accounts have had a few, and get no more.
SELECT moved.tx_id, tx.hash AS tx_hash, moved.lovelace
FROM (
    SELECT tx_id, place, lovelace FROM instantaneous_reward
    WHERE stake_no = (SELECT stake_no FROM stake WHERE raw = $1)
    ORDER BY tx_id {order}, place {order}
    LIMIT $2 OFFSET $3
) moved
JOIN tx USING (tx_id)
ORDER BY moved.tx_id {order}, moved.place {order}

-- name: assets
-- A page of the assets in the unspent outputs of an account $1, in the order of the {first} output that holds each,
-- ties by policy and name; $2 limit, $3 offset.
-- NOTE: each page reads the assets of all its outputs, as the order changes with each output that is spent: a million
-- of them take a third of a second.
WITH asked AS MATERIALIZED (
    SELECT stake_no FROM stake WHERE raw = $1
), held AS (
    SELECT asset_no, tx_id, output_index FROM account_utxo_asset WHERE stake_no = (SELECT stake_no FROM asked)
    UNION ALL
    SELECT unnest(asset_nos), tx_id, output_index FROM utxo
    WHERE stake_no = (SELECT stake_no FROM asked) AND asset_nos IS NOT NULL
      AND NOT EXISTS (SELECT FROM account_utxo_bucket WHERE stake_no = (SELECT stake_no FROM asked))
), placed AS (
    SELECT asset_no, {edge}(ARRAY[tx_id, output_index::bigint]) AS place FROM held GROUP BY asset_no
)
SELECT policy.policy_id, asset.name, (
           SELECT quantity::text FROM account_holder
           WHERE account_no = (SELECT stake_no FROM asked) AND account_holder.asset_no = placed.asset_no
       ) AS quantity
FROM placed
JOIN asset USING (asset_no)
JOIN policy USING (policy_no)
ORDER BY placed.place {order}, policy.policy_id, asset.name
LIMIT $2 OFFSET $3
