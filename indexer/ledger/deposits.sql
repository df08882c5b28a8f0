-- Deposits in the protocol parameters.

-- name: changed
-- Whether an epoch whose protocol parameters are stored has another deposit than $1 of a stake credential or $2 of a
-- pool.
SELECT EXISTS (
    SELECT FROM epoch_parameters
    WHERE parameters #>> '{stakeCredentialDeposit,ada,lovelace}' <> $1::bigint::text
       OR parameters #>> '{stakePoolDeposit,ada,lovelace}' <> $2::bigint::text
) AS any
