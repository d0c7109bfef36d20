import re
from uuid import uuid4

from django import forms
from lead_intake import EmailContact, LeadCapture


class TextField(forms.CharField):
    """Makes each line break one character: a browser counts one, and sends two."""

    def to_python(self, value: object) -> str:
        return re.sub(r"\r\n?", "\n", super().to_python(value))


class ContactForm(forms.Form):
    """Immediately shows a visitor the faults for which the service would refuse the lead later."""

    #: Identifies the page: submitting it several times with the same data creates one lead. Any value is accepted.
    key = forms.CharField(required=False, initial=uuid4, widget=forms.HiddenInput)
    name = TextField(widget=forms.TextInput({"maxlength": 160}))
    # Browsers refuse addresses such as jörg@müller.de in fields for email.
    email = TextField(widget=forms.TextInput({"maxlength": 254, "inputmode": "email"}))
    note = TextField(required=False, widget=forms.Textarea({"maxlength": 2000}))

    def clean(self) -> None:
        fields = {"displayName": "name", "contact.value": "email", "note": "note"}
        for field, faults in (self.to_capture().faults() if not self.errors else {}).items():
            self.add_error(fields[field], [f"It {fault}." for fault in faults])

    def to_capture(self) -> LeadCapture:
        data = self.cleaned_data
        return LeadCapture(data["name"], EmailContact(data["email"]), note=data["note"])
