from uuid import uuid4

from django import forms
from lead_intake import EmailContact, LeadCapture


class ContactForm(forms.Form):
    """The limits are those of the API, so that a visitor immediately sees what would be refused later."""

    #: Identifies the page: submitting it several times with the same data creates one lead.
    key = forms.UUIDField(initial=uuid4, widget=forms.HiddenInput)
    name = forms.CharField(max_length=160)
    email = forms.EmailField(max_length=254)
    note = forms.CharField(max_length=2000, required=False, widget=forms.Textarea)

    def to_capture(self) -> LeadCapture:
        data = self.cleaned_data
        return LeadCapture(data["name"], EmailContact(data["email"]), note=data["note"] or None)
