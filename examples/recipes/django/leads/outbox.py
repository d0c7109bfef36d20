"""The website's outbox."""

from django.db import connections
from lead_intake.outbox import Outbox

#: The name is this website's, because another website in the same database would send the leads of this one.
TABLE = "example_com_leads"

# Each operation has its own connection, so that its commits do not affect a request's transaction.
outbox = Outbox(lambda: connections.create_connection("default"), table=TABLE)
