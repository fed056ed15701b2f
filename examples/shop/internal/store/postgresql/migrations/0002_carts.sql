CREATE TABLE carts (
    session    text PRIMARY KEY,
    version    bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- For prune, which deletes the carts that nobody came back for.
CREATE INDEX carts_updated_at ON carts (updated_at);

CREATE TABLE cart_items (
    session    text NOT NULL REFERENCES carts ON DELETE CASCADE,
    product_id text NOT NULL REFERENCES products,
    quantity   bigint NOT NULL CHECK (quantity BETWEEN 1 AND 99),
    added_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session, product_id)
);
