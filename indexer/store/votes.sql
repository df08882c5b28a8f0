-- Vote delegations that end without a certificate of their account, inside a commit of the caller.

-- name: forked
SELECT epoch_no, major FROM protocol_fork

-- name: fork
INSERT INTO protocol_fork (epoch_no, major) VALUES ($1, $2)

-- name: end_by_fork
-- Before the first transaction of an epoch, which has at least the tx_id $1, end the delegations to representatives
-- that are not registered. An index that does not begin at the origin keeps those to representatives that it has not
-- seen retire. Cost: once in a chain, one pass over all delegations.
INSERT INTO vote_delegation (tx_id, stake_no, place, kind)
SELECT $1, stake_no, -1, 'fork'
FROM represented
WHERE length(representative) = 29
  AND NOT EXISTS (SELECT FROM registered_representative r WHERE r.representative = represented.representative)
  AND ((SELECT first_block_no = 0 FROM tip)
       OR EXISTS (SELECT FROM representative_event e
                  WHERE e.representative = represented.representative AND e.kind = 'retirement'))

-- name: end_by_retirement
-- At the retirement of representative $1 at tx_id $2 and place $3, end the delegations of the accounts in its set.
--
-- Since protocol 10, those are the accounts that delegate to it. Before, an account enters the set when it delegates to
-- the registered representative. It leaves it with its next change only if that is a deregistration or a delegation to
-- a predefined representative: a delegation to another one leaves it in both sets (DELEG, cardano-ledger issue 4772),
-- and then nothing takes it out of the first. So the change after its last delegation to the representative decides.
-- Cost: a few look-ups for each delegation to the representative.
WITH registered AS MATERIALIZED (
    SELECT tx_id, place FROM representative_event
    WHERE representative = $1 AND kind = 'registration' AND (tx_id, place) < ($2::bigint, $3::smallint)
    ORDER BY tx_id DESC, place DESC LIMIT 1
), delegated AS MATERIALIZED (
    SELECT DISTINCT ON (stake_no) stake_no, tx_id, place FROM vote_delegation
    WHERE representative = $1 AND length(representative) = 29 AND (tx_id, place) < ($2::bigint, $3::smallint)
    ORDER BY stake_no, tx_id DESC, place DESC
)
INSERT INTO vote_delegation (tx_id, stake_no, place, kind)
SELECT $2, delegated.stake_no, $3, 'retirement'
FROM delegated LEFT JOIN LATERAL (
    SELECT kind, representative FROM vote_delegation v
    WHERE v.stake_no = delegated.stake_no AND (v.tx_id, v.place) > (delegated.tx_id, delegated.place)
      AND (v.tx_id, v.place) < ($2::bigint, $3::smallint)
    ORDER BY tx_id, place LIMIT 1
) next ON true JOIN LATERAL (
    SELECT representative FROM vote_delegation v
    WHERE v.stake_no = delegated.stake_no AND (v.tx_id, v.place) < ($2::bigint, $3::smallint)
    ORDER BY tx_id DESC, place DESC LIMIT 1
) now ON now.representative IS NOT NULL
WHERE CASE
    WHEN EXISTS (SELECT FROM protocol_fork) THEN now.representative = $1
    ELSE (next.kind IS NULL OR next.kind = 'retirement' OR length(next.representative) = 29)
         AND NOT EXISTS (SELECT FROM registered r WHERE (delegated.tx_id, delegated.place) < (r.tx_id, r.place))
END
