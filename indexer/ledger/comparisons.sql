-- Whether the index knows the ledger's state.

-- name: state
-- How far the reading of the ledger's state is; always one row.
SELECT ledger_state.epoch_no, ledger_state.next_stake_no, ledger_state.complete_epoch_no,
       EXISTS (SELECT FROM reward_due) AS due
FROM (SELECT) one LEFT JOIN ledger_state ON true
