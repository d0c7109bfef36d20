"""An outbox: stores leads in a table of the website's own database, and sends them later."""

from ._database import Connection, Engine
from ._entries import Attention, Delivery, Entry, SettledLead
from ._keys import key_for
from ._outbox import Outbox
from ._page import OutboxPage, PageResponse
from ._reconciliation import Difference, Reconciliation, WaitingLeads
from ._table import DEFAULT_TABLE, set_up_sql
from .errors import OutboxError

__all__ = [
    "DEFAULT_TABLE",
    "Attention",
    "Connection",
    "Delivery",
    "Difference",
    "Engine",
    "Entry",
    "Outbox",
    "OutboxError",
    "OutboxPage",
    "PageResponse",
    "Reconciliation",
    "SettledLead",
    "WaitingLeads",
    "key_for",
    "set_up_sql",
]
