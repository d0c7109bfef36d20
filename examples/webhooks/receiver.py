"""Receives webhooks of Lead Intake on PORT, behind a proxy that terminates TLS. WEBHOOK_SECRET is one of the endpoint's secrets."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
# Replace this with a table in your database that has the highest revision of each lead.
revisions: dict[str, int] = {}
MAX_BYTES = 1024 * 1024


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A connection is closed after this many seconds without data.
    timeout = 30

    def do_POST(self) -> None:
        try:
            length = int(self.headers["content-length"])
            if not 0 <= length <= MAX_BYTES:
                raise ValueError
            # Verify the bytes as they came: JSON that was parsed and serialized again would have another signature.
            body = self.rfile.read(length)
            message = webhook.verify(body, {name.lower(): value for name, value in self.headers.items()})
        except (TypeError, ValueError, WebhookVerificationError):
            return self.answer(401)
        data = message["data"]
        # A change may come twice or late. The first revision of a lead is 0.
        if revisions.get(data["leadId"], -1) < int(data["revision"]):
            revisions[data["leadId"]] = int(data["revision"])
            print(message["type"], data["leadId"], data["revision"], ",".join(data["kinds"]), flush=True)
        # Respond only now: a change that got a 2xx does not come again.
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        if status == 401:
            # The unread rest of this request must not be read as the next one.
            self.send_header("connection", "close")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
