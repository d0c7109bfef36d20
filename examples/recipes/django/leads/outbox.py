"""The website's outbox."""

from django.db import connections
from lead_intake.outbox import Outbox

#: Named after this website: another one in the same database would send its leads.
TABLE = "example_com_leads"

# Each pass has a separate connection, so that its commits do not affect a request's transaction.
outbox = Outbox(lambda: connections.create_connection("default"), table=TABLE)
