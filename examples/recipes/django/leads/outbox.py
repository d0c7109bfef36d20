"""The website's outbox."""

from django.db import connections
from lead_intake.outbox import Outbox

# Each pass has a connection of its own: what it commits is nothing of a request's.
outbox = Outbox(lambda: connections.create_connection("default"))
