-- An order keeps names and prices of its own: what was bought does not change
-- when the catalogue does. It keeps its session without a reference, as it
-- outlives the cart.
CREATE TABLE IF NOT EXISTS orders (
    id              varchar(128) COLLATE utf8mb4_0900_bin PRIMARY KEY,
    session         varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
    idempotency_key varchar(128) COLLATE utf8mb4_0900_bin,
    total           bigint NOT NULL,
    currency        varchar(3) NOT NULL,
    created_at      datetime(6) NOT NULL DEFAULT now(6),
    UNIQUE (session, idempotency_key),
    INDEX orders_latest (session, created_at DESC)
) CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS order_items (
    order_id   varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
    position   integer NOT NULL,
    product_id varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
    name       varchar(255) NOT NULL,
    price      bigint NOT NULL,
    quantity   bigint NOT NULL,
    PRIMARY KEY (order_id, position),
    FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE
) CHARACTER SET utf8mb4;
