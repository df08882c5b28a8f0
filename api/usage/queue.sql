-- name: marks
-- The offset up to which the usage tables have each of these spools, and whether it was set more than $2 seconds ago.
-- No row for a spool of which the tables have no records.
SELECT spool, next_offset, added_at < now() - make_interval(secs => $2) AS is_safe
FROM partner.usage_batch WHERE spool = ANY($1::text[])
