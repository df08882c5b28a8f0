-- How an index begins.

-- name: renumber
UPDATE tip SET numbering = gen_random_uuid()

-- name: forget_verification
-- The last verification of network $1 was of an index that is gone.
DELETE FROM partner.verification WHERE network_id = $1
