-- The lists of policies' assets get buckets, as those of holders have.

-- == partner ==

-- == chain ==

-- At once, so that no reader who holds one of them waits for another meanwhile.
LOCK TABLE asset, holder, policy_holder IN ACCESS EXCLUSIVE MODE;

DROP INDEX holder_opening, policy_holder_opening, asset_supply;
DROP FUNCTION opens_bucket;
CREATE FUNCTION opens_bucket(number integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
-- Whether what has this number, a holder or an asset, begins a bucket in whatever list it stands: about one in 1,024 does.
SELECT (number::bigint * 2654435761 >> 16) & 1023 = 0
$$;
CREATE INDEX holder_opening ON holder (asset_id, quantity, address_id) WHERE opens_bucket(address_id);
CREATE INDEX policy_holder_opening ON policy_holder (policy_id, quantity, address_id) WHERE opens_bucket(address_id);
CREATE INDEX asset_supply ON asset (policy_id, (-supply), name) INCLUDE (supply) WHERE first_tx_id IS NOT NULL;
CREATE INDEX asset_opening ON asset (policy_id, (-supply), name) INCLUDE (supply)
    WHERE first_tx_id IS NOT NULL AND opens_bucket(asset_id);

CREATE TABLE asset_bucket (
    policy_id integer NOT NULL,
    rank      numeric NOT NULL,
    name      bytea   NOT NULL,
    assets    integer NOT NULL,
    PRIMARY KEY (policy_id, rank, name)
);
COMMENT ON TABLE asset_bucket IS
    'How many assets of a policy there are from one with opens_bucket to the next, by supply, greatest first, and name, for policies with 4 such or more: deep pages are found by it.';
COMMENT ON COLUMN asset_bucket.rank IS 'What the list goes by, then name: the negative supply; -Infinity in the first bucket, which begins before all assets.';

-- An index in bulk counts them at its end.
WITH list AS (
    SELECT policy_id FROM asset WHERE first_tx_id IS NOT NULL AND opens_bucket(asset_id) AND EXISTS (SELECT FROM tip WHERE phase = 'live')
    GROUP BY policy_id HAVING count(*) >= 4
), numbered AS (
    SELECT policy_id, asset_id, -supply AS rank, name, count(*) FILTER (WHERE opens_bucket(asset_id)) OVER (
        PARTITION BY policy_id ORDER BY -supply, name
    ) AS bucket
    FROM asset JOIN list USING (policy_id)
    WHERE first_tx_id IS NOT NULL
), counted AS (
    SELECT policy_id, bucket, count(*) AS assets FROM numbered GROUP BY policy_id, bucket
)
INSERT INTO asset_bucket (policy_id, rank, name, assets)
SELECT policy_id, coalesce(rank, '-Infinity'), coalesce(name, ''), assets
FROM counted LEFT JOIN (SELECT * FROM numbered WHERE opens_bucket(asset_id)) opening USING (policy_id, bucket);
