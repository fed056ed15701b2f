-- An order keeps names and prices of its own: what was bought does not change
-- when the catalogue does. It keeps its session without a reference, as it
-- outlives the cart.
CREATE TABLE orders (
    id              text PRIMARY KEY,
    session         text NOT NULL,
    idempotency_key text,
    total           bigint NOT NULL,
    currency        text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (session, idempotency_key)
);

CREATE INDEX orders_latest ON orders (session, created_at DESC);

CREATE TABLE order_items (
    order_id   text NOT NULL REFERENCES orders ON DELETE CASCADE,
    position   integer NOT NULL,
    product_id text NOT NULL,
    name       text NOT NULL,
    price      bigint NOT NULL,
    quantity   bigint NOT NULL,
    PRIMARY KEY (order_id, position)
);
