-- The certificates that register a stake account or end it.

-- name: page
-- A page of the registrations and deregistrations of an account $1, in their order; $2 limit, $3 offset. `earlier` is
-- how many registrations of the account precede each in the same transaction. Cost: the account's certificates up to
-- the end of the page, and a few look-ups for each entry of the page.
WITH page AS MATERIALIZED (
    SELECT stake_no, tx_id, place, kind, epoch_no FROM stake_event
    WHERE stake_no = (SELECT stake_no FROM stake WHERE raw = $1) AND kind <> 'delegation' AND tx_id >= 0
    ORDER BY tx_id {order}, place {order}
    LIMIT $2 OFFSET $3
)
SELECT page.tx_id, page.kind = 'registration' AS is_registration,
       (SELECT count(*) FROM stake_event earlier
        WHERE earlier.stake_no = page.stake_no AND earlier.tx_id = page.tx_id AND earlier.place < page.place
          AND earlier.kind = 'registration') AS earlier,
       (SELECT parameters #>> '{stakeCredentialDeposit,ada,lovelace}' FROM epoch_parameters
        WHERE epoch_parameters.epoch_no = page.epoch_no) AS key_deposit,
       tx.hash, tx.extra, block.block_no
FROM page
CROSS JOIN LATERAL (SELECT hash, extra FROM tx WHERE tx.tx_id = page.tx_id LIMIT 1) tx
CROSS JOIN LATERAL (SELECT block_no FROM block WHERE block.slot_no = page.tx_id >> 16 LIMIT 1) block
ORDER BY page.tx_id {order}, page.place {order}
