import signal
from threading import Event
from typing import Any

from django.core.mail import mail_admins
from django.core.management.base import BaseCommand, CommandParser
from lead_intake.outbox import WaitingLeads

from leads.outbox import outbox
from leads.service import KEY, client


class Command(BaseCommand):
    help = "Sends the leads that are due. Prints nothing about them: report_leads does, once a day."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--loop", action="store_true", help="continues until SIGTERM or Ctrl-C, which stop it between two leads")

    def handle(self, *args: Any, loop: bool, **options: Any) -> None:
        with client(KEY) as service:
            if loop:
                stop = Event()
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, lambda *_: stop.set())
                outbox.run(service, stop, on_waiting=mail)
            else:
                outbox.deliver(service, on_waiting=mail)


def mail(waiting: WaitingLeads) -> None:
    """Mails ADMINS once a day the leads that have waited for more than a day."""
    reasons = [f"{count}: {reason}" for reason, count in waiting.reasons.items()]
    lines = [f"The oldest is from {waiting.oldest.isoformat()}.", *reasons, "manage.py report_leads prints all of them."]
    mail_admins(f"{waiting.count} leads have waited for more than a day", "\n".join(lines))
