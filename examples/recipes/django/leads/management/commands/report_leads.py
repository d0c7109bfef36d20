import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from lead_intake.outbox import OutboxError

from leads.outbox import outbox
from leads.service import KEY, client


class Command(BaseCommand):
    help = "Prints the leads that need a person, with the visitor's message; nothing when there are none."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--compare", action="store_true", help="first prints whether the sent leads have arrived")

    def handle(self, *args: Any, compare: bool, **options: Any) -> None:
        if compare:
            self.compare()
        needy = outbox.needs_attention()
        for entry in needy.entries:
            reason = entry.reason or "not tried yet"
            self.stdout.write(f"{entry.idempotency_key}, from {entry.created_at.isoformat()}, {entry.state}: {reason}")
            capture = entry.capture and json.dumps(entry.capture, ensure_ascii=False)
            self.stdout.write(f"  {capture or 'unreadable'}")
        if needy.count > len(needy.entries):
            self.stdout.write(f"and more: {needy.count} in all")

    def compare(self) -> None:
        try:
            with client(KEY) as service:
                report = outbox.reconcile(service)
        except OutboxError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(report.summary)
        for each in report.differences:
            stored = each.created_at.isoformat()
            self.stdout.write(f"{each.idempotency_key}, from {stored}, lead {each.lead_id}: {each.reason}")
        if len(report.differences) == 100:
            self.stdout.write("and perhaps more: these are the newest")
