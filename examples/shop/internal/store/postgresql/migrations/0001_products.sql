CREATE TABLE products (
    id          text PRIMARY KEY,
    name        text NOT NULL,
    description text NOT NULL,
    price       bigint NOT NULL CHECK (price > 0),
    position    integer NOT NULL
);
