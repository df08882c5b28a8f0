-- name: oldest
-- For how long the oldest snapshot of this database has been held; 0 if there is none.
SELECT coalesce(max(held_s), 0) AS held_s FROM partner.held_snapshot
