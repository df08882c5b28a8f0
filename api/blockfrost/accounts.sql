-- Stake accounts.

-- name: certified
-- Whether a certificate ever registered an account $1, ended it, or delegated its stake, and the epoch of the last one
-- that registered or ended it; null if there is none, or if it is part of the genesis. Reads certificates from the last
-- one back.
SELECT EXISTS (SELECT FROM stake_event WHERE stake_no = asked.stake_no) AS certified, (
           SELECT CASE WHEN tx_id >= 0 THEN epoch_no END FROM stake_event
           WHERE stake_no = asked.stake_no AND kind <> 'delegation'
           ORDER BY tx_id DESC, place DESC LIMIT 1
       ) AS registration_epoch_no
FROM (SELECT (SELECT stake_no FROM stake WHERE raw = $1) AS stake_no) asked
