-- Amounts that move in bulk are staged, as its histories are.

-- == partner ==

-- == chain ==

CREATE TABLE balance_staged (stake_id integer NOT NULL, lovelace bigint NOT NULL);
CREATE TABLE holder_staged (asset_id integer NOT NULL, address_id integer NOT NULL, quantity bigint, large numeric);
COMMENT ON TABLE balance_staged IS
    'What batches, and rollbacks with the other sign, move of stake.balance while in bulk: added up where an epoch begins and at its end.';
COMMENT ON TABLE holder_staged IS 'What they move of held quantities while in bulk: added up at its end.';

-- An index in bulk has moved its holders already: they are staged like the rest.
INSERT INTO holder_staged (asset_id, address_id, large)
SELECT asset_id, address_id, quantity FROM holder WHERE EXISTS (SELECT FROM tip WHERE phase = 'bulk');
DELETE FROM holder WHERE EXISTS (SELECT FROM tip WHERE phase = 'bulk');
DELETE FROM policy_holder WHERE EXISTS (SELECT FROM tip WHERE phase = 'bulk');
