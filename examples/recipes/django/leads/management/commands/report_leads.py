import json
from typing import Any

from django.core.management.base import BaseCommand

from leads.outbox import outbox


class Command(BaseCommand):
    help = "Prints the leads that need a person, with what the visitor wrote; nothing when there are none."

    def handle(self, *args: Any, **options: Any) -> None:
        needy = outbox.needs_attention()
        for entry in needy.entries:
            reason = entry.reason or "not tried yet"
            self.stdout.write(f"{entry.idempotency_key}, from {entry.created_at.isoformat()}, {entry.state}: {reason}")
            capture = entry.capture and json.dumps(entry.capture, ensure_ascii=False)
            self.stdout.write(f"  {capture or 'unreadable'}")
        if needy.count > len(needy.entries):
            self.stdout.write(f"and more: {needy.count} in all")
