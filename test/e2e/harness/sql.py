"""Makes one connection, told as JSON on standard input, and runs one statement.
What it returns, or why it does not, goes to standard output."""
import json
import sys
import tempfile

import psycopg2

ask = json.load(sys.stdin)
answer = {"rows": [], "error": ""}
with tempfile.NamedTemporaryFile("w") as root:
    settings = ask["settings"]
    if ask.get("ca"):
        root.write(ask["ca"])
        root.flush()
        settings["sslrootcert"] = root.name
    try:
        connection = psycopg2.connect(ask.get("uri", ""), connect_timeout=5, **settings)
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(ask["statement"])
        if cursor.description:
            answer["rows"] = ["|".join("" if v is None else str(v) for v in row) for row in cursor.fetchall()]
        connection.close()
    except psycopg2.Error as e:
        answer["error"] = " ".join(str(e).split()) or type(e).__name__
json.dump(answer, sys.stdout)
