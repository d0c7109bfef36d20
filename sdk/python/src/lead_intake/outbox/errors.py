"""The error of the outbox."""


class OutboxError(Exception):
    """The state of the table does not permit the operation, or a listener or sending a lead has failed. Has no personal data."""
