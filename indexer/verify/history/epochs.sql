-- name: epochs
-- Every epoch with a row or a block, and the number of its blocks. Byron has $1 slots in total, $2 in each of its $3
-- epochs; an epoch of later eras has $4 slots.
SELECT epoch_no, coalesce(made.blocks, 0) AS counted_blocks, epoch.blocks, epoch.tx_count, epoch.fees,
       epoch.output::text
FROM epoch
FULL JOIN (
    SELECT CASE WHEN slot_no < $1::bigint THEN slot_no / $2::bigint
                ELSE (slot_no - $1::bigint) / $4::bigint + $3::bigint END::integer AS epoch_no,
           count(*) AS blocks
    FROM block GROUP BY 1
) made USING (epoch_no)
ORDER BY epoch_no
