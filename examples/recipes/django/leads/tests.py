from django.test import TestCase, TransactionTestCase

from .models import StoredLead
from .outbox import outbox

FORM = {"name": "Ada", "email": "ada@example.org", "note": "A trial, please."}


class FormTest(TestCase):
    """Tests the view. This kind of test never commits, so the outbox's own connection would see nothing."""

    def test_a_double_click_is_one_lead_also_without_the_hidden_field(self) -> None:
        for _ in range(2):
            self.assertRedirects(self.client.post("/contact/", FORM), "/contact/thanks/")
        self.assertEqual(StoredLead.objects.count(), 1)


class OutboxTest(TransactionTestCase):
    """Tests the rest of the outbox."""

    def test_a_lead_can_be_erased(self) -> None:
        self.client.post("/contact/", FORM)
        lead = StoredLead.objects.get()
        outbox.discard(lead.pk)
        lead.refresh_from_db()
        self.assertEqual((lead.state, lead.capture), ("discarded", None))
