from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from .models import StoredLead
from .outbox import outbox


@admin.register(StoredLead)
class LeadsInNeed(admin.ModelAdmin):
    """The leads that need a person, with the reason. Rows are read-only: the outbox resends or erases them."""

    list_display = ["idempotency_key", "stored_at", "state", "attempts", "reason"]
    fields = ["idempotency_key", "stored_at", "state", "attempts", "reason", "capture"]
    readonly_fields = fields
    ordering = ["created_at"]
    actions = ["send_again", "discard"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[StoredLead]:
        keys = [entry.idempotency_key for entry in outbox.needs_attention().entries]
        return super().get_queryset(request).filter(pk__in=keys)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: StoredLead | None = None) -> bool:
        return False

    @admin.action(description="Send again", permissions=["change"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[StoredLead]) -> None:
        for lead in chosen:
            outbox.retry(lead.pk)

    @admin.action(description="Erase, without sending", permissions=["change"])
    def discard(self, request: HttpRequest, chosen: QuerySet[StoredLead]) -> None:
        for lead in chosen:
            outbox.discard(lead.pk)
