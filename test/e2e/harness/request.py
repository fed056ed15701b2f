"""Makes one HTTP request, told as JSON on standard input, and tells its answer."""
import json
import sys

ask = json.load(sys.stdin)
connection = dial(ask)
connection.request(ask["method"], ask["path"], ask.get("body") or None, ask.get("headers") or {})
answer = connection.getresponse()
json.dump({"status": answer.status, "body": answer.read().decode("utf-8", "replace")}, sys.stdout)
