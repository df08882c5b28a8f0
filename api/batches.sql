-- Up to where the table has each of these spools; one that it has nothing of gives no row.
-- name: marks
SELECT spool, next_offset FROM partner.usage_batch WHERE spool = ANY($1::text[])

-- The spool's file is in the table from end to end, and deleted.
-- name: close
UPDATE partner.usage_batch SET closed_at = now() WHERE spool = $1

-- Names that no batch can come with again: the file is gone, and a message is dropped unread after a day.
-- name: forget
DELETE FROM partner.usage_batch WHERE closed_at < now() - interval '30 days'
