-- Stake accounts, by their reward account $1 (29 bytes). A list is one snapshot, and returns no row if the network is
-- not served, a single row with nulls if the page is empty. {order} is the direction, {after} or {compare} the
-- comparison with a cursor, {edge} the place before all others.

-- name: account
-- The stake, rewards, withdrawals and number of addresses of an account. Its last certificate shows whether it is
-- registered: a credential that is not registered can't delegate.
SELECT tip.first_block_no > 0 AS partial, event.kind AS last_event, coalesce(reward.lovelace, 0) AS rewards,
       pool.pool_id, delegation.active_epoch_no, vote.representative, coalesce(stake.address_count, 0) AS address_count,
       coalesce(withdrawn.withdrawals, 0) AS withdrawal_count
FROM tip
LEFT JOIN stake ON stake.raw = $1
LEFT JOIN delegation ON delegation.stake_no = stake.stake_no
LEFT JOIN pool ON pool.pool_no = delegation.pool_no
LEFT JOIN reward ON reward.stake_no = stake.stake_no
LEFT JOIN LATERAL (
    SELECT kind FROM stake_event
    WHERE stake_event.stake_no = stake.stake_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) event ON true
LEFT JOIN LATERAL (
    -- Whatever ends a delegation is a row without a representative.
    SELECT representative FROM vote_delegation WHERE vote_delegation.stake_no = stake.stake_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) vote ON true
LEFT JOIN LATERAL (
    SELECT (chunk << 6) + length(entries) / 18 AS withdrawals FROM account_withdrawal
    WHERE account_withdrawal.stake_no = stake.stake_no
    ORDER BY chunk DESC LIMIT 1
) withdrawn ON true
WHERE tip.phase = 'live'

-- name: addresses
-- A page of the addresses of an account in the order of their first use, which is that of their numbers, and one row
-- beyond the page; $2 limit, $3 offset, $4 the address after which to continue, or null. An unused one comes last.
-- NOTE: the offset looks up each address before the page, which takes about 5 ms for each thousand. A cursor costs the
-- same at any depth.
WITH passed AS MATERIALIZED (
    SELECT address_no FROM address WHERE raw = $4
), page AS (
    SELECT address_no, raw FROM address
    WHERE stake_no = (SELECT stake_no FROM stake WHERE raw = $1)
      AND address_no {after} CASE WHEN $4 IS NULL THEN {edge}
          ELSE coalesce((SELECT address_no FROM passed), 2147483647) END
      AND (EXISTS (SELECT FROM address_tx WHERE address_tx.address_no = address.address_no AND chunk = 0)
           OR EXISTS (SELECT FROM utxo WHERE utxo.address_no = address.address_no))
    ORDER BY address_no {order}
    LIMIT $2::bigint + 1 OFFSET $3
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, page.raw
FROM tip
LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.address_no {order}

-- name: delegations
-- A page of the delegations of an account in their order, and one row beyond the page; $2 limit, $3 offset, $4 and $5
-- the tx_id and place at which to begin, or null. tx_id is negative in the genesis.
-- NOTE: the offset reads each of the account's certificates before the page. A cursor costs the same at any depth.
WITH page AS (
    SELECT tx_id, place, pool_no, epoch_no FROM stake_event
    WHERE stake_no = (SELECT stake_no FROM stake WHERE raw = $1) AND kind = 'delegation'
      AND (tx_id, place) {compare} (coalesce($4, {edge}), coalesce($5, 0))
    ORDER BY tx_id {order}, place {order}
    LIMIT $2::bigint + 1 OFFSET $3
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash,
       (SELECT pool_id FROM pool WHERE pool.pool_no = page.pool_no) AS pool_id, page.epoch_no, page.tx_id, page.place,
       (SELECT hash FROM tx WHERE tx.tx_id = page.tx_id) AS tx_hash
FROM tip
LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.tx_id {order}, page.place {order}

-- name: withdrawals
-- A page of the withdrawals of an account, oldest first: a range of the primary key, at the same cost for any offset.
--   $2 limit  $3 offset  $4 whether the offset counts from the newest
WITH asked AS MATERIALIZED (
    SELECT stake_no, coalesce((
               SELECT (chunk << 6) + length(entries) / 18 FROM account_withdrawal
               WHERE account_withdrawal.stake_no = stake.stake_no ORDER BY chunk DESC LIMIT 1
           ), 0) AS total
    FROM stake WHERE raw = $1
), page AS (
    SELECT *, CASE WHEN $4 THEN total - $3::bigint - $2::bigint ELSE $3 END AS lowest FROM asked
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, coalesce(page.total, 0) AS total, entry.tx_id,
       (SELECT hash FROM tx WHERE tx.tx_id = entry.tx_id) AS tx_hash, entry.lovelace::text AS lovelace
FROM tip
LEFT JOIN page ON true
LEFT JOIN LATERAL account_withdrawal_range(page.stake_no, lowest, lowest + $2 - 1) entry ON true
WHERE tip.phase = 'live'
ORDER BY seq
