"""The error of the outbox."""


class OutboxError(Exception):
    """The table does not permit the operation, or the listener or sending failed. Contains no personal data."""
