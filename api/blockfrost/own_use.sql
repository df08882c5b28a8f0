-- What a credential $1 has used today and on the 29 days before (UTC), oldest day first.

-- name: days
-- Cost: a row for each of these days, and those of divided ones.
SELECT extract(epoch FROM day)::bigint AS began_at_s, (sum(successful) + sum(failed))::bigint AS requests
FROM partner.usage_day
WHERE credential_id = $1 AND day >= (now() AT TIME ZONE 'UTC')::date - 29
GROUP BY day
ORDER BY day

-- name: endpoint_days
-- Cost: the rows of these days' hours, 720 for each endpoint and class of status at most.
SELECT extract(epoch FROM day)::bigint AS began_at_s, endpoint.name AS endpoint, requests
FROM (
    SELECT date_trunc('day', hour, 'UTC') AS day, endpoint_no, sum(requests)::bigint AS requests
    FROM partner.usage_hour
    WHERE credential_id = $1 AND hour >= date_trunc('day', now(), 'UTC') - interval '29 days' AND requests > 0
    GROUP BY 1, 2
) used
JOIN partner.endpoint USING (endpoint_no)
ORDER BY day, endpoint
