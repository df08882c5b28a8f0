-- Stake accounts.

-- name: certified
-- Whether a certificate ever registered an account $1, ended it, or delegated its stake. One look-up each.
SELECT EXISTS (SELECT FROM stake JOIN stake_event USING (stake_no) WHERE raw = $1) AS certified
