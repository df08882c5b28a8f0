-- name: marks
-- The offset up to which the usage tables have each of these spools, and whether it was set more than $2 seconds ago.
-- No row for a spool of which the tables have no records.
SELECT spool, next_offset, added_at < now() - make_interval(secs => $2) AS is_safe
FROM partner.usage_batch WHERE spool = ANY($1::text[])

-- name: close
-- All records of the spool are in the usage tables, and its file is deleted.
UPDATE partner.usage_batch SET closed_at = now() WHERE spool = $1

-- name: forget
-- Forget spools whose file was deleted 30 days ago. A message lives for a day, so none can still arrive.
DELETE FROM partner.usage_batch WHERE closed_at < now() - interval '30 days'
