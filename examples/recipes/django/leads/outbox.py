"""The website's outbox."""

from django.db import connections
from lead_intake.outbox import Outbox

# Each pass has a separate connection, so that its commits do not affect a request's transaction.
outbox = Outbox(lambda: connections.create_connection("default"))
