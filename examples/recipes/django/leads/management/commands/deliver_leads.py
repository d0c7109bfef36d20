import os
import signal
from threading import Event
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from lead_intake import LeadIntakeClient

from leads.outbox import outbox


class Command(BaseCommand):
    help = "Sends the leads that are due. It prints nothing about them: report_leads does, once a day."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--loop", action="store_true", help="goes on until SIGTERM or Ctrl-C, between two leads")

    def handle(self, *args: Any, loop: bool, **options: Any) -> None:
        try:
            url, key = os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"]
            # The outbox itself retries.
            sender = LeadIntakeClient(url, key, deadline_seconds=10)
        except KeyError as missing:
            raise CommandError(f"{missing} must be set") from None
        except ValueError as wrong:
            raise CommandError(f"LEAD_INTAKE_URL or LEAD_INTAKE_KEY is wrong: {wrong}") from None
        with sender as client:
            if loop:
                stop = Event()
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, lambda *_: stop.set())
                outbox.run(client, stop)
            else:
                outbox.deliver(client)
