CREATE TABLE IF NOT EXISTS carts (
    session    varchar(128) COLLATE utf8mb4_0900_bin PRIMARY KEY,
    version    bigint NOT NULL DEFAULT 0,
    updated_at datetime(6) NOT NULL DEFAULT now(6),
    -- For prune, which deletes the carts that nobody came back for.
    INDEX carts_updated_at (updated_at)
) CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS cart_items (
    session    varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
    product_id varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
    quantity   bigint NOT NULL CHECK (quantity BETWEEN 1 AND 99),
    added_at   datetime(6) NOT NULL DEFAULT now(6),
    PRIMARY KEY (session, product_id),
    FOREIGN KEY (session) REFERENCES carts (session) ON DELETE CASCADE,
    FOREIGN KEY (product_id) REFERENCES products (id)
) CHARACTER SET utf8mb4;
