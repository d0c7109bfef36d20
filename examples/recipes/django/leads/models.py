from datetime import datetime, timezone

from django.db import models

from leads.outbox import TABLE


class StoredLead(models.Model):
    """The table of the outbox, for the admin's pages; only the outbox writes to it."""

    idempotency_key = models.CharField(max_length=36, primary_key=True)
    capture = models.TextField(null=True)
    state = models.CharField(max_length=16)
    attempts = models.IntegerField()
    created_at = models.BigIntegerField()
    next_attempt_at = models.BigIntegerField()
    settled_at = models.BigIntegerField(null=True)
    lead_id = models.CharField(max_length=36, null=True)
    reason = models.CharField(max_length=1000, null=True)

    class Meta:
        managed = False
        db_table = TABLE
        verbose_name = "lead that needs a person"
        verbose_name_plural = "leads that need a person"

    def __str__(self) -> str:
        return self.idempotency_key

    @property
    def stored_at(self) -> datetime:
        return datetime.fromtimestamp(self.created_at / 1000, timezone.utc)
