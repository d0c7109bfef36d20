import json
from functools import partial

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from .models import StoredLead
from .outbox import outbox


@admin.register(StoredLead)
class LeadsInNeed(admin.ModelAdmin):
    """The leads that need a person, with the reason. Rows are read-only: the outbox resends or erases them."""

    list_display = ["idempotency_key", "stored_at", "state", "attempts", "reason"]
    fields = ["idempotency_key", "stored_at", "state", "attempts", "reason", "data"]
    readonly_fields = fields
    ordering = ["created_at"]
    actions = ["send_again", "discard"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[StoredLead]:
        keys = [entry.idempotency_key for entry in outbox.needs_attention().entries]
        # The outbox alone reads the data: a text that is not UTF-8 would fail for the whole list.
        return super().get_queryset(request).defer("capture").filter(pk__in=keys)

    def data(self, lead: StoredLead) -> str:
        captures = {entry.idempotency_key: entry.capture for entry in outbox.needs_attention().entries}
        capture = captures.get(lead.pk)
        return json.dumps(capture, ensure_ascii=False, indent=1) if capture else "unreadable"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: StoredLead | None = None) -> bool:
        return False

    # The outbox has a connection of its own, which would wait for the transaction of a request under ATOMIC_REQUESTS.
    @admin.action(description="Send again", permissions=["change"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[StoredLead]) -> None:
        for lead in chosen:
            transaction.on_commit(partial(outbox.retry, lead.pk), robust=True)

    @admin.action(description="Erase, without sending", permissions=["change"])
    def discard(self, request: HttpRequest, chosen: QuerySet[StoredLead]) -> None:
        for lead in chosen:
            transaction.on_commit(partial(outbox.discard, lead.pk), robust=True)
