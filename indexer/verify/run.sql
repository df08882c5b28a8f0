-- What verify begins with.

-- name: tips
SELECT count(*) AS rows FROM tip
