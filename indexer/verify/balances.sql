-- The deposits that transactions may have paid.

-- name: deposits
-- Those of each epoch whose protocol parameters are stored.
SELECT DISTINCT (parameters #>> '{stakeCredentialDeposit,ada,lovelace}')::bigint AS stake,
       (parameters #>> '{stakePoolDeposit,ada,lovelace}')::bigint AS pool
FROM epoch_parameters
WHERE json_typeof(parameters #> '{stakeCredentialDeposit,ada,lovelace}') = 'number'
  AND json_typeof(parameters #> '{stakePoolDeposit,ada,lovelace}') = 'number'
