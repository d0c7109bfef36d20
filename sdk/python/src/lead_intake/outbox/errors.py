"""What the outbox cannot do."""


class OutboxError(Exception):
    """The outbox cannot do what it is asked, the way its table stands. The message says why; it tells nothing personal."""
