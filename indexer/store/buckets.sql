-- Long lists, counted in buckets.
--
-- A page at offset 400,000 must not read the 400,000 rows before it. So some rows of a list, about one in 1,024, open a
-- bucket, which reaches to the next such row, and the table of buckets has a row for each with what is in it. A page
-- skips whole buckets, then reads some thousand rows. For example, the holders of an asset by quantity, of whom * open
-- a bucket:
--
--     quantity   2  3  5*  5  8  9*  12        buckets from   0 (the beginning)   5*   9*
--                                              holders                        2    3    2
--
-- A row opens a bucket or not for ever, by its number, so the buckets depend on the rows of the list alone, not on the
-- order of changes: a rollback leaves those that it found. A row that comes or goes changes one count, unless it opens
-- a bucket: then the buckets around it are counted again. A list has buckets while at least {long} of its rows open
-- one.
--
-- {rows} selects the rows of all lists of a kind: list_no, rank and tie, by which a list is sorted, `opens`, and what
-- the sums need. {table} has the buckets, {key}, {rank} and {tie} are its columns, {columns} what it counts and sums.
-- {lowest} and {lowest_tie} begin the first bucket; no rank is beyond {highest}. {places} selects the places in lists
-- that rows have left or entered: list_no, rank, tie, opens, and the changes of {columns}, below 0 where a row left.

-- name: is_long
(SELECT count(*) FROM (SELECT FROM ({rows}) r WHERE r.list_no = {list_no} AND r.opens LIMIT {long}) opening) = {long}

-- name: long_lists
SELECT list_no FROM ({rows}) r WHERE opens GROUP BY list_no HAVING count(*) >= {long}

-- name: move
-- Runs after rows have come and gone. A list that has become long gets buckets; one that has become short loses them.
WITH place AS MATERIALIZED (
    {places}
), list AS MATERIALIZED (
    SELECT list_no, {is_long} AS long, EXISTS (SELECT FROM {table} b WHERE b.{key} = list_no) AS counted, opens
    FROM (SELECT list_no, bool_or(opens) AS opens FROM place GROUP BY list_no) touched
), removed AS (
    DELETE FROM {table} b USING place p JOIN list USING (list_no)
    WHERE b.{key} = p.list_no AND counted
      AND (NOT long OR p.opens) -- a separate condition, which filters `place` before it is joined with all buckets
      AND (NOT long OR (p.{count} < 0 AND b.{rank} = p.rank AND b.{tie} = p.tie))
), opening AS MATERIALIZED (
    SELECT list_no, opened.rank, opened.tie
    FROM place
    JOIN list USING (list_no)
    CROSS JOIN LATERAL (
        SELECT r.rank, r.tie FROM ({rows}) r
        WHERE r.list_no = place.list_no AND r.opens AND (r.rank, r.tie) <= (place.rank, place.tie)
        ORDER BY r.rank DESC, r.tie DESC
        LIMIT 2
    ) opened
    WHERE long AND counted AND place.opens
    UNION
    SELECT list_no, r.rank, r.tie FROM list JOIN ({rows}) r USING (list_no) WHERE long AND NOT counted AND r.opens
    UNION
    SELECT list_no, {lowest}, {lowest_tie} FROM list WHERE long AND (opens OR NOT counted)
), changed AS (
    -- The first bucket of a list may lack its row, see `fill`.
    INSERT INTO {table} AS b ({key}, {rank}, {tie}, {columns})
    SELECT list_no, rank, tie, {columns}
    FROM (
        SELECT list_no, coalesce(opened.rank, {lowest}) AS rank, coalesce(opened.tie, {lowest_tie}) AS tie, {changes}
        FROM place
        JOIN list USING (list_no)
        LEFT JOIN LATERAL (
            SELECT r.rank, r.tie FROM ({rows}) r
            WHERE r.list_no = place.list_no AND r.opens AND (r.rank, r.tie) <= (place.rank, place.tie)
            ORDER BY r.rank DESC, r.tie DESC
            LIMIT 1
        ) opened ON true
        WHERE long AND counted AND NOT place.opens
        GROUP BY 1, 2, 3
    ) moved
    WHERE ({columns}) IS DISTINCT FROM ({nothing})
      AND (list_no, rank, tie) NOT IN (SELECT list_no, rank, tie FROM opening)
    ON CONFLICT ({key}, {rank}, {tie}) DO UPDATE SET {add}
)
INSERT INTO {table} ({key}, {rank}, {tie}, {columns})
SELECT list_no, opening.rank, opening.tie, inside.*
FROM opening
LEFT JOIN LATERAL (
    SELECT r.rank, r.tie FROM ({rows}) r
    WHERE r.list_no = opening.list_no AND r.opens AND (r.rank, r.tie) > (opening.rank, opening.tie)
    ORDER BY r.rank, r.tie
    LIMIT 1
) next ON true
CROSS JOIN LATERAL (
    SELECT {sums} FROM ({rows}) r
    WHERE r.list_no = opening.list_no AND (r.rank, r.tie) >= (opening.rank, opening.tie)
      AND (r.rank, r.tie) < (coalesce(next.rank, {highest}), coalesce(next.tie, {lowest_tie}))
) inside
ON CONFLICT ({key}, {rank}, {tie}) DO UPDATE SET {replace}

-- name: counted
-- All buckets, from the rows of all lists.
WITH list AS (
    {long_lists}
), numbered AS (
    SELECT r.*, count(*) FILTER (WHERE opens)
               OVER (PARTITION BY list_no ORDER BY rank, tie ROWS UNBOUNDED PRECEDING) AS bucket
    FROM ({rows}) r JOIN list USING (list_no)
), inside AS (
    SELECT list_no, bucket, {sums} FROM numbered r GROUP BY list_no, bucket
), opening AS (
    SELECT list_no, rank, tie, bucket FROM numbered WHERE opens
    UNION ALL
    SELECT list_no, {lowest}, {lowest_tie}, 0 FROM list
)
SELECT list_no AS {key}, rank AS {rank}, tie AS {tie}, {or_nothing}
FROM opening LEFT JOIN inside USING (list_no, bucket)

-- name: fill
INSERT INTO {table} ({key}, {rank}, {tie}, {columns})
SELECT * FROM ({counted}) counted WHERE {filled}
