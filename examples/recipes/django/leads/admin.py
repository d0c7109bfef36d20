import json
import os
from functools import partial

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.management.base import CommandError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from lead_intake.outbox import OutboxError

from .models import StoredLead
from .outbox import outbox
from .service import READ_KEY, client

#: The maximum time of a comparison. Another click continues it.
SECONDS = 20


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
        # Only the outbox reads the data, because one text that is not UTF-8 would break the whole list.
        return super().get_queryset(request).defer("capture").filter(pk__in=keys)

    def data(self, lead: StoredLead) -> str:
        captures = {entry.idempotency_key: entry.capture for entry in outbox.needs_attention().entries}
        capture = captures.get(lead.pk)
        return json.dumps(capture, ensure_ascii=False, indent=1) if capture else "unreadable"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: StoredLead | None = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        return [path("compare/", self.admin_site.admin_view(self.compare)), *super().get_urls()]

    # See below. A transaction would also stay open during the whole comparison.
    @transaction.non_atomic_requests
    def compare(self, request: HttpRequest) -> HttpResponse:
        """Compares sent leads with the service, and shows the latest report, which may be the command's."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        problem = ""
        if request.method == "POST":
            try:
                with client(READ_KEY) as service:
                    outbox.reconcile(service, max_seconds=SECONDS)
            except (CommandError, OutboxError) as error:
                problem = str(error)
        context = {
            **self.admin_site.each_context(request),
            "title": "Compare with the service",
            "report": outbox.last_reconciliation(),
            "may_compare": READ_KEY in os.environ,
            "problem": problem,
        }
        return TemplateResponse(request, "admin/leads/storedlead/compare.html", context)

    # The outbox has its own connection. With ATOMIC_REQUESTS it would wait for the request's transaction.
    @admin.action(description="Send again", permissions=["change"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[StoredLead]) -> None:
        for lead in chosen:
            transaction.on_commit(partial(outbox.retry, lead.pk), robust=True)

    @admin.action(description="Erase, without sending", permissions=["change"])
    def discard(self, request: HttpRequest, chosen: QuerySet[StoredLead]) -> None:
        for lead in chosen:
            transaction.on_commit(partial(outbox.discard, lead.pk), robust=True)
