"""What the outbox cannot do."""


class OutboxError(Exception):
    """The outbox cannot do what it is asked, the way its table stands: the message says why, and nothing personal."""
