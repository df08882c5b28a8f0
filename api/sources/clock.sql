-- name: reading
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS at_us
