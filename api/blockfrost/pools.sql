-- The registered pools, and the certificates of one pool.

-- name: registered
-- A page of the pools that are registered in epoch $1, in the order of their first registration; $2 limit, $3 offset. A
-- retirement counts unless a later registration cancels it or a later retirement replaces it.
-- NOTE: each page reads all pools, with three look-ups each. There are a few thousand, since each costs a deposit of
-- 500 ada. Their row numbers are in another order: pools that are new in one batch of blocks are numbered by id.
SELECT pool.pool_id
FROM pool
CROSS JOIN LATERAL (
    SELECT tx_id, place FROM pool_update WHERE pool_update.pool_no = pool.pool_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) latest
CROSS JOIN LATERAL (
    SELECT tx_id, place FROM pool_update WHERE pool_update.pool_no = pool.pool_no
    ORDER BY tx_id, place LIMIT 1
) first
LEFT JOIN LATERAL (
    SELECT epoch_no FROM pool_retirement
    WHERE pool_retirement.pool_no = pool.pool_no AND (tx_id, place) > (latest.tx_id, latest.place)
    ORDER BY tx_id DESC, place DESC LIMIT 1
) retirement ON true
WHERE coalesce(retirement.epoch_no > $1, true)
ORDER BY first.tx_id {order}, first.place {order}
LIMIT $2 OFFSET $3

-- name: certificates
-- The transactions with the last 100 certificates of a pool $1 in {table}, newest first.
SELECT tx.hash
FROM {table} JOIN tx USING (tx_id)
WHERE pool_no = (SELECT pool_no FROM pool WHERE pool_id = $1)
ORDER BY tx_id DESC, place DESC
LIMIT 100

-- name: live_pledge
-- The stake of the accounts $2 whose last delegation was to pool $1, even if the account has ended since.
SELECT coalesce(sum(stake.balance + coalesce(reward.lovelace, 0)), 0)::bigint AS lovelace
FROM unnest($2::bytea[]) AS owner (raw)
JOIN stake ON stake.raw = owner.raw
LEFT JOIN reward ON reward.stake_no = stake.stake_no
WHERE (SELECT pool_no FROM pool WHERE pool_id = $1) = (
    SELECT pool_no FROM stake_event WHERE stake_event.stake_no = stake.stake_no AND kind = 'delegation'
    ORDER BY tx_id DESC, place DESC LIMIT 1
)

-- name: retirements
-- A page of the pools that retire after $1, the epoch of the tip ({compare} is >), or have retired (<=), with epochs,
-- in the order of epoch and announcement; $2 limit, $3 offset. A retirement counts unless a later registration cancels
-- it or a later retirement replaces it. Cost: two look-ups for each retirement up to the end of the page.
SELECT pool.pool_id, retirement.epoch_no
FROM pool_retirement retirement
CROSS JOIN LATERAL (
    SELECT tx_id, place FROM pool_update WHERE pool_update.pool_no = retirement.pool_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) updated
CROSS JOIN LATERAL (
    SELECT tx_id, place FROM pool_retirement later WHERE later.pool_no = retirement.pool_no
    ORDER BY tx_id DESC, place DESC LIMIT 1
) latest
CROSS JOIN LATERAL (SELECT pool_id FROM pool WHERE pool.pool_no = retirement.pool_no LIMIT 1) pool
WHERE retirement.epoch_no {compare} $1
  AND (retirement.tx_id, retirement.place) > (updated.tx_id, updated.place)
  AND (retirement.tx_id, retirement.place) = (latest.tx_id, latest.place)
ORDER BY retirement.epoch_no {order}, retirement.tx_id {order}, retirement.place {order}
LIMIT $2 OFFSET $3

-- name: registered_pool
-- The number of a pool $1, registered now or earlier.
SELECT pool_no FROM pool
WHERE pool_id = $1 AND EXISTS (SELECT FROM pool_update WHERE pool_update.pool_no = pool.pool_no)

-- name: updates
-- A page of the registrations and retirements of a pool with number $1, in order; $2 limit, $3 offset. `earlier` is how
-- many of its certificates precede each in the same transaction. Those of the genesis have no transaction. Cost: a
-- look-up for each certificate up to the end of the page, and the certificates of its transactions.
WITH page AS MATERIALIZED (
    SELECT tx_id, place, is_registration FROM (
        SELECT tx_id, place, true AS is_registration FROM pool_update WHERE pool_no = $1 AND tx_id >= 0
        UNION ALL
        SELECT tx_id, place, false FROM pool_retirement WHERE pool_no = $1 AND tx_id >= 0
    ) certificate
    ORDER BY tx_id {order}, place {order}
    LIMIT $2 OFFSET $3
)
SELECT tx.hash, tx.extra, page.is_registration,
       (SELECT count(*) FROM pool_update
        WHERE pool_no = $1 AND pool_update.tx_id = page.tx_id AND pool_update.place < page.place)
       + (SELECT count(*) FROM pool_retirement
          WHERE pool_no = $1 AND pool_retirement.tx_id = page.tx_id AND pool_retirement.place < page.place) AS earlier
FROM page CROSS JOIN LATERAL (SELECT hash, extra FROM tx WHERE tx.tx_id = page.tx_id LIMIT 1) tx
ORDER BY page.tx_id {order}, page.place {order}
