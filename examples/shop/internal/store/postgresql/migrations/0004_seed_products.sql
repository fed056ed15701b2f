-- A migration and not an upsert at every start: a product that was renamed,
-- repriced or withdrawn since stays so.
INSERT INTO products (id, name, description, price, position) VALUES
    ('mug',      'Stoneware mug',     'Holds a long coffee, and the warmth of it. Dishwasher safe.',     1600, 10),
    ('notebook', 'Dotted notebook',   '160 pages that lie flat. Room for plans, and for changing them.', 1250, 20),
    ('tote',     'Canvas tote',       'Thick organic cotton, long handles, an inside pocket for keys.',  2400, 30),
    ('beanie',   'Merino beanie',     'Fine-knit wool that keeps its shape. One size, most heads.',      2900, 40),
    ('plant',    'Desk plant',        'An easy-going succulent in a clay pot. Water it when you remember.',   1850, 50),
    ('lamp',     'Reading lamp',      'A warm pool of light and a switch that is where your hand is.',   6400, 60),
    ('candle',   'Cedar candle',      'Soy wax, cotton wick, forty hours of a quiet forest.',            1990, 70),
    ('print',    'Mountain print',    'A3, four colours, heavy uncoated paper. Comes without a frame.',  3500, 80)
ON CONFLICT (id) DO NOTHING;
