-- name: heads
-- The numbers of the last events of some subscriptions: a look-up each. Those that were deleted have none.
SELECT subscription_no, last_number FROM partner.subscription
WHERE subscription_no = ANY ($1::bigint[]) AND state <> 'ended'
