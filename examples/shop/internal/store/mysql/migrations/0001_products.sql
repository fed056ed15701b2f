-- NO PAD and compared by code points, as PostgreSQL compares text.
CREATE TABLE IF NOT EXISTS products (
    id          varchar(128) COLLATE utf8mb4_0900_bin PRIMARY KEY,
    name        varchar(255) NOT NULL,
    description text NOT NULL,
    price       bigint NOT NULL CHECK (price > 0),
    position    integer NOT NULL
) CHARACTER SET utf8mb4;
